"""The corpus on each engine: python -m tests.corpus.engines prints the counts.

An outcome is `equal`, `refused: REASON`, or anything else, which is wrong.
"""

import csv
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from caudal.duck.arrow_casts import presented
from caudal.duck.binder import DuckDBBinder
from caudal.duck.sandbox import Sandbox, SandboxLimits, Types
from caudal.errors import ApplicationError, QueryError, UsageError
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, Query, Table
from caudal.results.answers import Result
from caudal.run_options import Engine, RunOptions
from caudal.sql.planner import Plan, plan
from tests.corpus.statements import SCHEMAS, Statement, database, statements
from tests.fuzz.check import DifferenceError, compare
from tests.harness.plan_run import PlanRun

EQUAL = "equal"
REFUSALS = (ApplicationError, UsageError, QueryError)
_BATCH_ROWS = 2
_PARTITIONS = 3


def compared(statement: Statement, expected: pa.Table, found: pa.Table) -> str:
    try:
        names = expected.schema.names
        compare(expected, found.rename_columns(names), ordered=statement.is_ordered)
    except (DifferenceError, pa.ArrowInvalid) as error:
        return f"differs: {error}"
    return EQUAL


def expected_rows(every: Sequence[Statement]) -> dict[str, pa.Table]:
    """DuckDB's own answers. What it refuses does not belong into the corpus."""
    with database() as connection:
        return {one.sql: presented(connection.sql(one.sql)) for one in every}


class Split:
    """Plans each statement and runs its stages over small batches."""

    def __init__(self) -> None:
        self._binder = DuckDBBinder(SCHEMAS)
        self._stages, self._results = (
            Sandbox(SandboxLimits(trusted=True), types=one) for one in (Types.LOSSLESS, Types.PLAIN)
        )
        with database(lossless=True) as connection:
            self._batches = {
                name: _cut(connection.sql(f"FROM {name}").to_arrow_table()) for name in SCHEMAS
            }

    def close(self) -> None:
        for one in (self._binder, self._stages, self._results):
            one.close()

    def planned(self, sql: str) -> Plan:
        return plan({"q": sql}, SCHEMAS, binder=self._binder)

    def outcome(self, statement: Statement, expected: pa.Table) -> tuple[str, str]:
        """The outcome, and how the statement was planned."""
        try:
            made = self.planned(statement.sql)
            run = PlanRun(made, _PARTITIONS, self._stages, self._results)
            found = run.answers(self._batches)["q"]
        except REFUSALS as error:
            return f"refused: {error}", "refused"
        return compared(statement, expected, found), made.finish("q").strategy


def embedded_outcomes(every: Sequence[Statement], expected: dict[str, pa.Table]) -> dict[str, str]:
    """The outcome of every statement in the embedded engine, over files of text."""
    with tempfile.TemporaryDirectory() as place:
        _write_files(Path(place))
        found = _embedded(Path(place), every)
    return {
        one.sql: compared(one, expected[one.sql], result.table)
        if isinstance(result, Result)
        else result
        for one, result in zip(every, found, strict=True)
    }


def _embedded(folder: Path, every: Sequence[Statement]) -> list[Result | str]:
    """Answers of all in one run; if it fails, of each half by itself."""
    queries = tuple(Query(f"q{n}", one.sql, one.sql, "it") for n, one in enumerate(every))
    tables = tuple(
        Table(name, (f"{name}.csv",), tuple(schema), _cleaning(schema), name)
        for name, schema in SCHEMAS.items()
    )
    app = Application("corpus", "the corpus", folder, tables, queries)
    try:
        found = run_with(Engine.EMBEDDED, app, Sources(folder), options=RunOptions(threads=1))
        return [found[query.name] for query in queries]
    except Exception as error:  # a crash is an outcome too, to be counted and shown
        if len(every) == 1:
            word = "refused" if isinstance(error, REFUSALS) else type(error).__name__
            return [f"{word}: {error}"]
    half = len(every) // 2
    return [*_embedded(folder, every[:half]), *_embedded(folder, every[half:])]


def _cleaning(schema: dict[str, str]) -> str:
    listed = ", ".join(f"""nullif("{c}", '')::{kind} AS "{c}\"""" for c, kind in schema.items())
    return f"SELECT {listed}, NULL::VARCHAR AS reject FROM raw"


def _write_files(folder: Path) -> None:
    with database() as connection:
        for table, schema in SCHEMAS.items():
            rows = connection.sql(f"SELECT COLUMNS(*)::VARCHAR FROM {table}").fetchall()
            with (folder / f"{table}.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([list(schema), *rows])


def _cut(rows: pa.Table) -> list[pa.Table]:
    return [rows.slice(first, _BATCH_ROWS) for first in range(0, rows.num_rows, _BATCH_ROWS)]


def main() -> int:
    """Print the counts; the number of statements that were neither equal nor refused."""
    every = list(statements())
    expected = expected_rows(every)
    split = Split()
    planned = Counter[str]()
    outcomes: dict[str, dict[str, str]] = {
        "split": {},
        "embedded": embedded_outcomes(every, expected),
    }
    for one in every:
        outcomes["split"][one.sql], strategy = split.outcome(one, expected[one.sql])
        planned[strategy] += 1
    split.close()
    wrong = 0
    for engine, found in outcomes.items():
        counts = Counter(outcome.split(":")[0] for outcome in found.values())
        print(f"{engine}: {dict(counts)} of {len(expected)} statements")
        for sql, outcome in found.items():
            if outcome != EQUAL:
                print(f"  {outcome[:200]}\n    {sql}")
                wrong += not outcome.startswith("refused")
    print(f"planned: {dict(planned)}, {planned['scaled'] / len(expected):.0%} scale")
    return wrong


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
