"""From queries to a plan: each query is split if its shape allows, else gathered, else taken whole.

Every doubt is resolved towards the slower plan that is certainly right; its reason is kept for
`explain`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlglot import exp

from caudal.errors import UsageError
from caudal.sql.planner import averages, dialect, fallback, hints, lower, moments, types
from caudal.sql.planner.algebra import PRIVATE, Context, Relation
from caudal.sql.planner.binder import Binder
from caudal.sql.planner.binding import Binding
from caudal.sql.planner.blocks import RESERVED, Block, Names, canonical
from caudal.sql.planner.dialect import UnsupportedError, quoted
from caudal.sql.planner.pieces import Cutter
from caudal.sql.planner.plan import Finish, Plan, Strategy, TableSchema
from caudal.sql.planner.registry import Registry


def plan(
    queries: Mapping[str, str],
    tables: Mapping[str, TableSchema],
    *,
    scalar_functions: Mapping[str, str] | None = None,
    moment: datetime | None = None,
    binder: Binder | None = None,
) -> Plan:
    """The plan that answers all these queries.

    `scalar_functions` names the functions that Caudal adds to SQL, with the types they return;
    `moment` is what `now()` means; `binder` lets DuckDB name columns and tables where only its own
    parser can. The same arguments always give the same plan.
    """
    functions = {n.lower(): types.normal(k) for n, k in (scalar_functions or {}).items()}
    planner = _Planner(tables, functions, moment, binder)
    texts = {name: planner.prepared(sql) for name, sql in queries.items()}
    # Planned once to see which stages several queries could share, and once more to share them.
    first = Registry()
    if len(texts) > 1:
        for name, text in texts.items():
            planner.finish(name, text, first)
    registry = Registry(shared=frozenset(first.uncut))
    finishes = tuple(planner.finish(name, text, registry) for name, text in texts.items())
    return Plan(
        {name: dict(schema) for name, schema in tables.items()},
        registry.scans(),
        registry.folds(),
        finishes,
        hints.hints(registry),
    )


@dataclass(frozen=True)
class _Text:
    """A query as given and as planned, with the names of its columns if DuckDB told them."""

    given: str
    sql: str
    names: tuple[str, ...] | None


@dataclass
class _Planner:
    tables: Mapping[str, TableSchema]
    functions: dict[str, str]
    moment: datetime | None
    binder: Binder | None
    _trees: dict[str, exp.Query] = field(default_factory=dict)
    _alike: dict[str, bool] = field(default_factory=dict)

    def prepared(self, given: str) -> _Text:
        names = None
        if self.binder is not None:
            names = tuple(column.name for column in self.binder.columns(given))
        frozen = moments.frozen(given, self.moment) if self.moment is not None else given
        return _Text(given, averages.rewrite_averages(frozen, self._is_valid), names)

    def _is_valid(self, sql: str) -> bool:
        if self.binder is None:
            return True
        try:
            self.binder.columns(sql)
        except UsageError:
            return False
        return True

    def finish(self, name: str, text: _Text, registry: Registry) -> Finish:
        """The query's finish; its other stages are in the registry."""
        try:
            query = self._parsed(text.sql)
        except UnsupportedError as reason:
            return self._whole_tables(name, text, registry, str(reason))
        known = registry.copied()
        try:
            return self._scaled(name, query, text, registry)
        except UnsupportedError as reason:
            registry.forget(name, known)
            return self._gathered(name, query, text, registry, str(reason))

    def _parsed(self, sql: str) -> exp.Query:
        if sql not in self._trees:
            self._trees[sql] = dialect.parse(sql)
        return self._trees[sql]

    def _is_read_alike(self, sql: str, query: exp.Query) -> bool:
        if self.binder is not None and sql not in self._alike:
            self._alike[sql] = self.binder.same(sql, dialect.text(query))
        return self._alike.get(sql, True)

    def _scaled(self, name: str, query: exp.Query, text: _Text, registry: Registry) -> Finish:
        if PRIVATE.search(text.sql):
            raise UnsupportedError("its text holds characters that the planner keeps for itself")
        if any(RESERVED.fullmatch(column) for schema in self.tables.values() for column in schema):
            raise UnsupportedError("a table has columns with names that the planner gives out")
        if not self._is_read_alike(text.sql, query):
            raise UnsupportedError("a text that the planner does not read as DuckDB does")
        context = Context(self.functions)
        known = {table.lower(): (table, schema) for table, schema in self.tables.items()}
        relation = Binding(context, known, {}).query(query)
        lowering = lower.Lowering(Cutter(registry, context, name, Names()))
        columns = tuple(output.column for output in relation.outputs)
        piece = lower.finished(lowering, relation.node, columns)
        listed = self._named(relation, piece.block, text)
        strategy: Strategy = "gathered" if lowering.reasons else "scaled"
        (sql,) = canonical([piece.block.select(listed)])
        inputs = {stage: stage for stage in piece.inputs}
        reason = "; ".join(lowering.reasons)
        return Finish(name, inputs, sql, piece.block.operators, strategy, reason)

    def _named(self, relation: Relation, block: Block, text: _Text) -> list[tuple[str, str]]:
        names = text.names or [
            output.name or f"column{place}" for place, output in enumerate(relation.outputs, 1)
        ]
        if any(RESERVED.fullmatch(name) for name in names):
            raise UnsupportedError("a column has a name that the planner gives out")
        texts = [block.columns[output.column] for output in relation.outputs]
        return [(text, quoted(name)) for text, name in zip(texts, names, strict=True)]

    def _gathered(
        self, name: str, query: exp.Query, text: _Text, registry: Registry, reason: str
    ) -> Finish:
        read = {table.name.lower() for table in query.find_all(exp.Table)}
        if self.binder is not None:  # which also looks into query('FROM ...')
            read |= {table.lower() for table in self.binder.table_names(text.sql)}
        inputs = {}
        for table, schema in self.tables.items():
            if table.lower() in read:
                columns = fallback.needed_columns(query, text.sql, schema)
                where = fallback.own_predicates(query, table, self.tables, self.functions)
                inputs[table] = self._gather(name, table, columns, where, registry)
        return Finish(name, inputs, text.sql, ("the whole query",), "gathered", reason)

    def _whole_tables(self, name: str, text: _Text, registry: Registry, reason: str) -> Finish:
        if self.binder is None:
            raise UsageError(f"query {name}: {reason}")
        read = {table.lower() for table in self.binder.table_names(text.sql)}
        inputs = {
            table: self._gather(name, table, list(schema), [], registry)
            for table, schema in self.tables.items()
            if table.lower() in read
        }
        return Finish(name, inputs, text.sql, ("the whole query",), "whole tables", reason)

    def _gather(
        self, name: str, table: str, columns: list[str], where: list[str], registry: Registry
    ) -> str:
        """A scan that keeps the columns' own names, since the user's text will read them."""
        listed = ", ".join(quoted(column) for column in columns)
        inner = f"SELECT {listed} FROM {quoted(table)}"
        if where:
            inner += " WHERE " + " AND ".join(f"({condition})" for condition in where)
        operators = (*(("filter",) if where else ()), "project")
        return registry.verbatim(table, inner, operators, name)
