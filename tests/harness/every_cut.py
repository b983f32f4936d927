"""The split engine against plain DuckDB over the corpus's tables, cut in several ways."""

import pyarrow as pa

from caudal.duck.arrow_casts import carried, presented
from caudal.duck.binder import DuckDBBinder
from caudal.duck.sandbox import Sandbox, SandboxLimits, Types
from caudal.sql.planner import Plan, plan
from tests.corpus.statements import SCHEMAS, database
from tests.fuzz.check import compare
from tests.harness.plan_run import PlanRun

CUTS = ((1, 99), (3, 1), (5, 2))  # partitions, rows of a batch


class EveryCut:
    """What both engines need, made once for many queries."""

    def __init__(self) -> None:
        self.direct = database()
        self._binder = DuckDBBinder(SCHEMAS)
        self._stages = Sandbox(SandboxLimits(trusted=True))
        self._results = Sandbox(SandboxLimits(trusted=True), types=Types.PLAIN)
        with database(lossless=True) as lossless:
            self._tables = {name: carried(lossless.sql(f"FROM {name}")) for name in SCHEMAS}

    def close(self) -> None:
        for one in (self.direct, self._binder, self._stages, self._results):
            one.close()

    def planned(self, sql: str) -> Plan:
        return plan({"q": sql}, SCHEMAS, binder=self._binder)

    def expected(self, sql: str) -> pa.Table:
        """DuckDB's own rows."""
        return presented(self.direct.sql(sql))

    def answers(self, sql: str) -> list[pa.Table]:
        """The rows of the split engine, for each way to cut the tables."""
        made = self.planned(sql)
        return [
            PlanRun(made, partitions, self._stages, self._results).answers(
                {name: _batches(rows, size) for name, rows in self._tables.items()}
            )["q"]
            for partitions, size in CUTS
        ]

    def check(self, sql: str, *, ordered: bool = False) -> None:
        """Raise DifferenceError unless every cut gives DuckDB's rows."""
        expected = self.expected(sql)
        for found in self.answers(sql):
            compare(expected, found.rename_columns(expected.schema.names), ordered=ordered)


def _batches(rows: pa.Table, size: int) -> list[pa.Table]:
    return [rows.slice(first, size) for first in range(0, rows.num_rows, size)]
