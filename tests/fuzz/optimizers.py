"""Is DuckDB's optimiser right? `python -m tests.fuzz.optimizers SECONDS [FIRST_SEED]`.

Each statement of the planner's fuzz tests runs twice: as Caudal opens DuckDB, and without any rule
of the optimiser. Both must give the same rows, or both an error. Run it when DuckDB is updated: a
rule that is wrong belongs into DISABLED_OPTIMIZERS (ADR 74).

Rows without an order may come in any, and an error may depend on the order of joins: look at what
is found before you believe it.
"""

import itertools
import sys
import time
from collections.abc import Mapping
from random import SystemRandom

import duckdb
import pyarrow as pa

from caudal.duck.arrow_casts import presented, readable
from tests.fuzz.check import Bench, DifferenceError, compare
from tests.fuzz.run import MOST_DIFFERENCES, case
from tests.harness.oracle import ORACLE


class Database:
    """A DuckDB with these rules switched off."""

    def __init__(self, disabled: str) -> None:
        self._connection = duckdb.connect(config={**ORACLE, "disabled_optimizers": disabled})
        self._connection.execute("SET TimeZone = 'UTC'")
        self._loaded: Mapping[str, pa.Table] = {}

    def rows(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table | str:
        """The rows of a SELECT, or the error in words."""
        if self._loaded is not tables:
            for name, rows in tables.items():
                with readable(self._connection, "drawn", rows):
                    self._connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS FROM drawn')
            self._loaded = tables
        try:
            types = [one.type for one in self._connection.extract_statements(sql)]
            if types != [duckdb.StatementType.SELECT]:
                return "not one SELECT"
            return presented(self._connection.sql(sql))
        except duckdb.Error as error:
            return str(error)


def difference(plain: pa.Table | str, optimised: pa.Table | str, *, ordered: bool) -> str:
    """How the two differ; empty if they do not."""
    if isinstance(plain, str) or isinstance(optimised, str):
        both = isinstance(plain, str) and isinstance(optimised, str)
        return "" if both else f"without rules: {_told(plain)}; with them: {_told(optimised)}"
    try:
        compare(plain, optimised, ordered=ordered)
    except DifferenceError as error:
        return str(error)
    return ""


def _told(rows: pa.Table | str) -> str:
    return rows if isinstance(rows, str) else f"{rows.num_rows} rows"


def main(seconds: float, first: int) -> int:
    """Compare until the time is over; return the number of differences."""
    bench = Bench()
    with duckdb.connect() as connection:
        rules = [name for (name,) in connection.execute("FROM duckdb_optimizers()").fetchall()]
    plain, optimised = Database(",".join(rules)), Database(str(ORACLE["disabled_optimizers"]))
    end, count, wrong = time.monotonic() + seconds, 0, 0
    for seed in itertools.count(first):
        tables, queries = case(seed, bench)
        for sql, ordered in queries:
            found = plain.rows(sql, tables), optimised.rows(sql, tables)
            count += 1
            if told := difference(*found, ordered=ordered):
                wrong += 1
                print(f"seed {seed}: {sql}\n{told}", flush=True)
        if time.monotonic() >= end or wrong >= MOST_DIFFERENCES:
            break
    print(f"{count} statements from seed {first}: {wrong} differences")
    return wrong


if __name__ == "__main__":
    given = [float(one) for one in sys.argv[1:]]
    start = int(given[1]) if len(given) > 1 else SystemRandom().randrange(10**9)
    sys.exit(1 if main(given[0] if given else 60.0, start) else 0)
