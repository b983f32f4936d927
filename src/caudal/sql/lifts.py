"""Lifts: expensive functions of one column, computed while the table is read.

Rules:
1. A call such as `sentiment(text)` on a column of a base table is lifted: it becomes a column of
   that table, computed once for all queries; then the text itself need not be kept.
2. It is computed only on rows that the query can see: conjuncts of the WHERE beside the call
   that speak of that table alone, and of tables read earlier. Other rows get null, and the
   query's own WHERE never lets them through. Outer joins in the same SELECT switch this off.
3. What sqlglot does not understand is not lifted: slower, never wrong.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

Schema = Mapping[str, str]  # column -> DuckDB type
Schemas = Mapping[str, Schema]  # by table, in the order of reading

EXPENSIVE = {"sentiment": "DOUBLE"}  # function -> type of its result
_VOLATILE = (exp.Rand, exp.Uuid)
_DIALECT = "duckdb, normalization_strategy=case_sensitive"


@dataclass(frozen=True)
class Lift:
    """An expensive function of one column, computed while its table is read."""

    table: str
    function: str
    column: str
    condition: str | None  # over the table's columns; None: on every row
    key_sets: tuple[tuple[str, str], ...] = ()  # (name, SELECT): sets that the condition reads

    @property
    def name(self) -> str:
        return f"{self.function}({self.column})"

    @property
    def type(self) -> str:
        return EXPENSIVE[self.function]


def lift(sql: str, schemas: Schemas, *, label: str) -> tuple[str, tuple[Lift, ...]]:
    """The query over tables that carry its lifts as columns, and those lifts.

    `label` keeps the names of its key sets apart from those of other queries.
    """
    if not any(name in sql.lower() for name in EXPENSIVE):
        return sql, ()
    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
        known: dict[str, object] = {name: dict(kinds) for name, kinds in schemas.items()}
        tree = qualify(tree, schema=known, dialect=_DIALECT, quote_identifiers=True)
        lifts = _take_lifts(tree, schemas, label)
        return (tree.sql(dialect="duckdb"), lifts) if lifts else (sql, ())
    except (SqlglotError, ValueError, KeyError, RecursionError):
        return sql, ()


def output_names(sql: str) -> list[str]:
    """The names of a SELECT's columns as its author wrote them; empty when unknown."""
    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
        return list(tree.named_selects) if isinstance(tree, exp.Query) else []
    except (SqlglotError, ValueError, RecursionError):
        return []


def quote(name: str) -> str:
    """An identifier as SQL text."""
    return '"' + name.replace('"', '""') + '"'


def _take_lifts(tree: exp.Expr, schemas: Schemas, label: str) -> tuple[Lift, ...]:
    """Replace each liftable call in the tree by a column, and say which they were."""
    lifts: list[Lift] = []
    for scope in traverse_scope(tree):
        for call in list(scope.find_all(exp.Anonymous)):
            found = _lift_of(call, scope, schemas)
            if found is None:
                continue
            found = _with_condition(found, call, scope, schemas, f"{label}_{len(lifts)}")
            column = call.expressions[0].copy()
            column.set("this", exp.to_identifier(found.name, quoted=True))
            call.replace(column)
            lifts.append(found)
    return tuple(lifts)


def _lift_of(call: exp.Anonymous, scope: Scope, schemas: Schemas) -> Lift | None:
    if call.name.lower() not in EXPENSIVE or len(call.expressions) != 1:
        return None
    column = call.expressions[0]
    if not isinstance(column, exp.Column):
        return None
    source = scope.sources.get(column.table)
    if not isinstance(source, exp.Table) or source.name not in schemas:
        return None
    return Lift(source.name, call.name.lower(), column.name, None)


def _with_condition(
    found: Lift, call: exp.Anonymous, scope: Scope, schemas: Schemas, label: str
) -> Lift:
    """Rule 2."""
    select = scope.expression
    where = select.args.get("where")
    if where is None or not isinstance(select, exp.Select) or _has_outer_join(select):
        return found
    alias = call.expressions[0].table
    earlier = list(schemas)[: list(schemas).index(found.table)]
    conjuncts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    parts = [part.copy() for part in conjuncts if _alone(part, alias, earlier)]
    if not parts:
        return found
    condition = exp.paren(exp.and_(*parts))
    key_sets: list[tuple[str, str]] = []
    for inner in list(condition.find_all(exp.Subquery, exp.Select)):
        if inner.find_ancestor(exp.Subquery, exp.Select) is None:
            name = f"keys_{label}_{len(key_sets)}"
            key_sets.append((name, inner.unnest().sql(dialect="duckdb")))
            keys = exp.select("*").from_(name)
            inner.replace(keys.subquery() if isinstance(inner, exp.Subquery) else keys)
    for column in condition.find_all(exp.Column):
        if column.table == alias:
            column.set("table", None)
    return replace(found, condition=condition.sql(dialect="duckdb"), key_sets=tuple(key_sets))


def _has_outer_join(select: exp.Select) -> bool:
    return any(
        join.side or join.kind.upper() not in ("", "INNER", "CROSS")
        for join in select.args.get("joins") or ()
    )


def _alone(part: exp.Expr, alias: str, earlier: Sequence[str]) -> bool:
    """Does this conjunct speak only of the table `alias` and of tables read earlier?"""
    if part.find(exp.AggFunc, exp.Window, *_VOLATILE):
        return False
    if any(call.name.lower() in EXPENSIVE for call in part.find_all(exp.Anonymous)):
        return False
    if any(table.name not in earlier for table in part.find_all(exp.Table)):
        return False
    for column in part.find_all(exp.Column):
        inside = column.find_ancestor(exp.Subquery, exp.Select)
        within = inside is not None and any(node is part for node in _ancestors(inside))
        if within == (column.table == alias):
            return False
    return True


def _ancestors(node: exp.Expr) -> Iterable[exp.Expr]:
    current: exp.Expr | None = node
    while current is not None:
        yield current
        current = current.parent
