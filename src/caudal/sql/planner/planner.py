"""From queries to a plan. `rules.py` lists the steps of planning a query.

A query is split if every step succeeds. Otherwise the rows it needs are gathered and its own text
runs over them (`fallback.py`). If that fails too, whole tables are gathered. So the planner chooses
a slower plan wherever it is not certain, and keeps the reason for `explain`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlglot import exp

from caudal.errors import UsageError
from caudal.sql.planner import (
    dialect,
    fallback,
    growing,
    hints,
    known_syntax,
    lower,
    refusals,
    types,
    validate_stages,
)
from caudal.sql.planner.algebra import Relation
from caudal.sql.planner.binder import Binder, OutputColumn, Reads
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.placed_rows import StageCutter
from caudal.sql.planner.plan import Finish, Plan, Strategy, TableSchema
from caudal.sql.planner.query_reader import read_query
from caudal.sql.planner.rules import rewrite_text
from caudal.sql.planner.select_block import RESERVED, STAGE, ColumnNames, SelectBlock, canonical
from caudal.sql.planner.stage_registry import StageRegistry
from caudal.sql.planner.text_checks import TextChecks
from caudal.sql.quoting import folded, quote

# If any of these is raised while a query is split, the query's own text still runs as it is.
_DOUBTS = (
    UnsupportedError, ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError,
    TypeError, ValueError,
)  # fmt: skip


def plan(
    queries: Mapping[str, str],
    tables: Mapping[str, TableSchema],
    *,
    scalar_functions: Mapping[str, str] | None = None,
    moment: datetime | None = None,
    binder: Binder | None = None,
) -> Plan:
    """Return the plan that answers all these queries.

    `scalar_functions` are the functions that Caudal adds to SQL, with the types they return.
    `moment` is what `now()` means. `binder` answers questions by DuckDB itself. The same arguments
    always give the same plan.
    """
    functions = {n.lower(): types.normal(k) for n, k in (scalar_functions or {}).items()}
    planner = _Planner(tables, functions, moment, binder)
    texts = {name: planner.prepare(name, sql) for name, sql in queries.items()}
    # The first pass finds the stages that several queries could share, the second shares them.
    first = StageRegistry(is_trial=True)
    if len(texts) > 1:
        for name, text in texts.items():
            planner.try_to_split(name, text, first)
    registry = StageRegistry(shared=frozenset(first.uncut))
    finishes = tuple(planner.finish(name, text, registry) for name, text in texts.items())
    return Plan(
        {name: dict(schema) for name, schema in tables.items()},
        registry.scans(),
        registry.folds(),
        finishes,
        hints.make_hints(registry),
    )


@dataclass(frozen=True)
class _QueryText:
    """A query as given and as rewritten, and the columns of its answer if DuckDB was asked."""

    given: str
    sql: str
    columns: tuple[OutputColumn, ...] | None


@dataclass
class _Planner:
    tables: Mapping[str, TableSchema]
    functions: dict[str, str]
    moment: datetime | None
    binder: Binder | None
    _trees: dict[str, exp.Query] = field(default_factory=dict)
    _read: dict[str, Reads | None] = field(default_factory=dict)
    _same: dict[str, bool] = field(default_factory=dict)
    _refused: dict[str, str] = field(default_factory=dict)  # text -> the reason why it is not split

    def prepare(self, name: str, given: str) -> _QueryText:
        if self.binder is None:
            return _QueryText(given, rewrite_text(given, TextChecks(self.moment)), None)
        try:
            columns = tuple(self.binder.columns(given))
            every = [column for schema in self.tables.values() for column in schema]
            refusals.require_readable(
                given, self._reads(given), every, lambda sql: self._types_of(sql) is not None
            )
        except UsageError as error:
            raise refusals.RefusedQueryError(name, str(error)) from error
        types_given = [column.type for column in columns]
        checks = TextChecks(
            self.moment,
            self.binder.mean_same,
            lambda sql: self._types_of(sql) == types_given,
            self.binder.change,
        )
        return _QueryText(given, rewrite_text(given, checks), columns)

    def _reads(self, sql: str) -> Reads | None:
        if sql not in self._read and self.binder is not None:
            self._read[sql] = self.binder.reads(sql)
        return self._read.get(sql)

    def _is_same(self, sql: str, query: exp.Query) -> bool:
        """Return whether DuckDB reads the text as the tree says."""
        if sql not in self._same and self.binder is not None:
            self._same[sql] = self.binder.same(sql, dialect.text(query))
        return self._same.get(sql, True)

    def _types_of(self, sql: str) -> list[str] | None:
        """Return the types that DuckDB gives a query's columns; None if the text is not valid."""
        assert self.binder is not None
        try:
            return [column.type for column in self.binder.columns(sql)]
        except UsageError:
            return None

    def try_to_split(self, name: str, text: _QueryText, registry: StageRegistry) -> None:
        """Add the stages of a query that can be split, to find what other queries could share."""
        registry.begin()
        try:
            self._split(name, self._parse(text.sql), text, registry)
        except _DOUBTS as doubt:
            registry.undo()
            self._refused[text.sql] = _reason(doubt)

    def finish(self, name: str, text: _QueryText, registry: StageRegistry) -> Finish:
        """Return the finish of a query, and add its other stages to the registry."""
        registry.begin()
        reason = self._refused.get(text.sql, "")
        try:
            query = self._parse(text.sql)
            if not reason:
                try:
                    return self._split(name, query, text, registry)
                except _DOUBTS as doubt:
                    registry.undo()
                    reason = self._refused[text.sql] = _reason(doubt)
            return self._gather_rows(name, query, text, registry, reason)
        except _DOUBTS as doubt:
            registry.undo()
            return self._gather_whole_tables(name, text, registry, reason or _reason(doubt))

    def _parse(self, sql: str) -> exp.Query:
        if sql not in self._trees:
            self._trees[sql] = dialect.parse(sql)
        return self._trees[sql]

    def _split(
        self, name: str, query: exp.Query, text: _QueryText, registry: StageRegistry
    ) -> Finish:
        known_syntax.require_no_marks(text.sql)
        if any(STAGE.fullmatch(table.name) for table in query.find_all(exp.Table)):
            raise UnsupportedError("a table has a name that the planner gives to stages")
        if any(RESERVED.fullmatch(column) for schema in self.tables.values() for column in schema):
            raise UnsupportedError(
                "a table has columns with names that the planner gives to columns"
            )
        if not registry.is_trial:
            known_syntax.require_understood(text.sql, query, self._is_same)
        relation, context = read_query(query, self.tables, self.functions)
        lowering = lower.Lowering(StageCutter(registry, context, name, ColumnNames()))
        columns = tuple(output.column for output in relation.outputs)
        rows = lower.lower_query(lowering, relation.node, columns)
        listed = self._name_outputs(relation, rows.block, text)
        strategy: Strategy = "gathered" if lowering.reasons else "scaled"
        (sql,) = canonical([rows.block.select(listed)])
        inputs = {stage: stage for stage in rows.inputs}
        reason = "; ".join(lowering.reasons)
        grows = growing.final_columns(relation, context)
        made = Finish(name, inputs, sql, rows.block.operators, strategy, reason, grows)
        if self.binder is not None and not registry.is_trial:
            validate_stages.require_valid(made, registry, text.columns or (), self.binder)
        return made

    def _name_outputs(
        self, relation: Relation, block: SelectBlock, text: _QueryText
    ) -> list[tuple[str, str]]:
        names = [
            output.name or f"column{place}" for place, output in enumerate(relation.outputs, 1)
        ]
        if text.columns is not None:
            names = [column.name for column in text.columns]
        if any(RESERVED.fullmatch(name) for name in names):
            raise UnsupportedError("a column has a name that the planner gives to columns")
        texts = [block.columns[output.column] for output in relation.outputs]
        return [(text, quote(name)) for text, name in zip(texts, names, strict=True)]

    def _gather_rows(
        self, name: str, query: exp.Query, text: _QueryText, registry: StageRegistry, reason: str
    ) -> Finish:
        if self.binder is None:
            named = {folded(table.name) for table in query.find_all(exp.Table)}
            read = {t: schema for t, schema in self.tables.items() if folded(t) in named}
            inputs = {
                t: self._gathering_scan(name, t, list(c), [], registry) for t, c in read.items()
            }
            return Finish(name, inputs, text.sql, ("the whole query",), "gathered", reason)
        reads = self._reads(text.sql)
        tables = self._read_tables(text.sql, reads)
        columns = fallback.needed_columns(text.sql, reads, tables, self.binder)
        pushes = reads is not None and self._is_same(text.sql, query)
        inputs = {}
        for table in tables:
            where: list[str] = []
            if pushes and reads is not None:
                scans = reads.scans.get(table, 0)
                where = fallback.own_predicates(query, table, scans, self.tables, self.functions)
            inputs[table] = self._gathering_scan(name, table, columns[table], where, registry)
        return Finish(name, inputs, text.sql, ("the whole query",), "gathered", reason)

    def _gather_whole_tables(
        self, name: str, text: _QueryText, registry: StageRegistry, reason: str
    ) -> Finish:
        if self.binder is None:
            raise refusals.RefusedQueryError(name, reason)
        reads = self._reads(text.sql)
        inputs = {
            table: self._gathering_scan(name, table, list(schema), [], registry)
            for table, schema in self._read_tables(text.sql, reads).items()
        }
        return Finish(name, inputs, text.sql, ("the whole query",), "whole tables", reason)

    def _read_tables(self, sql: str, reads: Reads | None) -> dict[str, TableSchema]:
        """Return the tables that the text names, and those that only its plan shows.

        For example, only the plan shows the table of `query('FROM t')`.
        """
        assert self.binder is not None
        found = {folded(table) for table in self.binder.table_names(sql)}
        found |= {folded(table) for table in (reads.scans if reads is not None else ())}
        return {table: schema for table, schema in self.tables.items() if folded(table) in found}

    def _gathering_scan(
        self, name: str, table: str, columns: list[str], where: list[str], registry: StageRegistry
    ) -> str:
        """Return a scan that keeps the names of columns, because the author's text reads them."""
        listed = ", ".join(quote(column) for column in columns)
        inner = f"SELECT {listed} FROM {quote(table)}"
        if where:
            inner += " WHERE " + " AND ".join(f"({condition})" for condition in where)
        operators = (*(("filter",) if where else ()), "project")
        return registry.verbatim(table, inner, operators, name)


def _reason(doubt: Exception) -> str:
    """Return the reason why a query is not split, for `explain`."""
    if isinstance(doubt, UnsupportedError):
        return str(doubt)
    if isinstance(doubt, RecursionError):
        return "it is nested too deeply for the planner"
    return f"the planner failed on it ({type(doubt).__name__})"
