"""One random case: the plan's rows against DuckDB's own."""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from caudal.duck.arrow_casts import presented, readable
from caudal.duck.bind import BoundQuery
from caudal.duck.binder import DuckDBBinder
from caudal.duck.sandbox import Sandbox, SandboxLimits, Types
from caudal.results.values import python_values
from caudal.sql.planner import Plan, plan
from tests.fuzz.mutations import keywords
from tests.fuzz.pruning import Pruning
from tests.fuzz.tables import ALL, Maker, cut
from tests.harness.oracle import ORACLE
from tests.harness.plan_run import PlanRun

TOLERANCE = 1e-9


class DifferenceError(Exception):
    """The plan gave other rows than DuckDB."""


class Bench:
    """Connections that many cases share: making them costs more than a case."""

    def __init__(self) -> None:
        self.stages = Sandbox(SandboxLimits(trusted=True))
        self.results = Sandbox(SandboxLimits(trusted=True), types=Types.PLAIN)
        self.binder = DuckDBBinder(ALL)
        self.maker = Maker()
        self.direct = duckdb.connect(config=ORACLE)
        self.direct.execute("SET TimeZone = 'UTC'")  # the session that all engines have
        self.pruning = Pruning(ALL)
        self.keywords = keywords()
        self._loaded: Mapping[str, pa.Table] = {}

    def close(self) -> None:
        for each in (
            self.stages, self.results, self.binder, self.maker, self.direct, self.pruning,
        ):  # fmt: skip
            each.close()

    def expected(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table | None:
        """DuckDB's own rows; None if the query fails there."""
        if self._loaded is not tables:
            self._load(tables)
        try:
            read = self.direct.extract_statements(sql)
            if [one.type for one in read] != [duckdb.StatementType.SELECT]:
                return None
            return presented(self.direct.sql(sql))
        except duckdb.Error:
            return None

    def _load(self, tables: Mapping[str, pa.Table]) -> None:
        """Tables as DuckDB itself would hold them: a statement may name them in any way."""
        for name, rows in tables.items():
            with readable(self.direct, "drawn", rows):
                self.direct.execute(f'CREATE OR REPLACE TABLE "{name}" AS FROM drawn')
        self._loaded = tables

    def answer(
        self, made: Plan, tables: Mapping[str, pa.Table], chance: random.Random
    ) -> dict[str, pa.Table]:
        """The plan's rows over randomly cut batches, in random order, on 1 to 5 partitions."""
        partitions = chance.randrange(1, 6)
        batches = {name: cut(rows, chance) for name, rows in tables.items()}

        def shuffled(numbers: Sequence[int]) -> list[int]:
            return chance.sample(numbers, len(numbers))

        hinted = bool(made.hints) and chance.random() < 0.5
        run = PlanRun(made, partitions, self.stages, self.results, hinted)
        return run.answers(batches, shuffled)

    def told(
        self,
        queries: Sequence[tuple[str, bool]],
        tables: Mapping[str, pa.Table],
        chance: random.Random,
    ) -> list[tuple[str, str]] | None:
        """How each query was planned, and why; None if DuckDB refuses one of them."""
        made = self.check(queries, tables, chance)
        if made is None:
            return None
        return [(str(finish.strategy), finish.reason) for finish in made.finishes]

    def check(
        self,
        queries: Sequence[tuple[str, bool]],
        tables: Mapping[str, pa.Table],
        chance: random.Random,
    ) -> Plan | None:
        """The plan of queries (and whether they are ordered), if DuckDB accepts them all.

        Raises DifferenceError if any of their rows differ.
        """
        expected = []
        for sql, _ in queries:
            rows = self.expected(sql, tables)
            if rows is None:
                return None
            expected.append(rows)
        texts = {f"q{place}": sql for place, (sql, _) in enumerate(queries)}
        made = plan(texts, ALL, binder=self.binder)
        found = self.answer(made, tables, chance)
        for place, (rows, (_, ordered)) in enumerate(zip(expected, queries, strict=True)):
            given = found[f"q{place}"].rename_columns(rows.schema.names)  # as engines do
            compare(rows, given, ordered=ordered)
        for rows, (sql, ordered) in zip(expected, queries, strict=True):
            self.check_pruned(sql, rows, tables, ordered=ordered)
        return made

    def check_pruned(
        self, sql: str, rows: pa.Table, tables: Mapping[str, pa.Table], *, ordered: bool
    ) -> BoundQuery:
        """What the embedded engine leaves out changes no row; raises DifferenceError if it does."""
        bound = self.pruning.bound(sql)
        try:
            given = self.pruning.rows(bound, tables)
        except duckdb.Error as error:
            raise DifferenceError(f"over pruned tables: {error}") from error
        compare(rows, given.rename_columns(rows.schema.names), ordered=ordered)
        return bound


def compare(expected: pa.Table, found: pa.Table, *, ordered: bool) -> None:
    """Raises DifferenceError unless both have the same columns, types and rows."""
    if expected.schema.names != found.schema.names:
        raise DifferenceError(f"columns {expected.schema.names} became {found.schema.names}")
    if [f.type for f in expected.schema] != [f.type for f in found.schema]:
        raise DifferenceError(f"types {expected.schema.types} became {found.schema.types}")
    one, two = _rows(expected), _rows(found)
    if not ordered:
        one, two = sorted(one, key=_sortable), sorted(two, key=_sortable)
    if len(one) != len(two) or not all(map(_same, one, two)):
        raise DifferenceError(f"expected {one}\n   found {two}")


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [python_values(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def _sortable(row: tuple[Any, ...]) -> tuple[list[str], list[float]]:
    """Floats last, and as they are: they may differ in their last bits, and rounding them would
    part two that lie at both sides of a tie."""
    exact = [repr(value) for value in row if not isinstance(value, float)]
    return exact, [-math.inf if math.isnan(one) else one for one in row if isinstance(one, float)]


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        if math.isnan(one) or math.isnan(two):
            return math.isnan(one) and math.isnan(two)
        return math.isclose(one, two, rel_tol=TOLERANCE, abs_tol=0.0)
    if isinstance(one, (list, tuple)) and isinstance(two, (list, tuple)):
        return len(one) == len(two) and all(map(_same, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return list(one) == list(two) and all(map(_same, one.values(), two.values()))
    return bool(one == two)
