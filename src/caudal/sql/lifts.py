"""What of a table a query can see, so that reading computes and keeps nothing else.

Rules:
1. A call such as `sentiment(text)` on a column of a base table is *lifted*: it becomes a column of
   that table, computed once for all queries; then the text itself need not be kept.
2. A SELECT sees only those rows of a table that satisfy the conjuncts of its WHERE which speak of
   that table alone, or of tables read earlier; and, where it joins the table to one read earlier
   by an equality, only rows whose key is among that table's keys. This is the *sight* of the
   SELECT. Rows out of sight contribute nothing: lifts are not computed for them, and rows that
   are out of sight of every SELECT of every query are not kept at all. Where a SELECT groups the
   table and the SELECT around it joins a group key in that way, the same holds for its rows.
3. Outer, semi, anti, natural and positional joins in the SELECT, and samples, widen the sight to
   all rows: there, a row that is missing may matter.
4. What sqlglot does not understand is not lifted and sees everything: slower, never wrong.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from caudal.sql.parsing import NOT_UNDERSTOOD, read_sql

Schema = Mapping[str, str]  # column -> DuckDB type
Schemas = Mapping[str, Schema]  # by table, in the order of reading

EXPENSIVE = {"sentiment": "DOUBLE"}  # function -> type of its result
_VOLATILE = (exp.Rand, exp.Uuid)
_DIALECT = "duckdb, normalization_strategy=case_sensitive"


@dataclass(frozen=True)
class Member:
    """The condition that a column is in a key set."""

    column: str
    keys: str

    @property
    def sql(self) -> str:
        return f"{quote(self.column)} IN (SELECT * FROM {self.keys})"


@dataclass(frozen=True)
class Sight:
    """Which rows of a table a SELECT can see: those for which all of this holds."""

    members: tuple[Member, ...] = ()
    conditions: tuple[str, ...] = ()  # over the table's columns
    key_sets: tuple[tuple[str, str], ...] = ()  # (name, SELECT): sets that all these read

    @property
    def condition(self) -> str | None:
        """The sight as SQL over the table's columns; None when it is everything."""
        parts = (*(one.sql for one in self.members), *self.conditions)
        return f"({' AND '.join(parts)})" if parts else None


EVERYTHING = Sight()


@dataclass(frozen=True)
class Lift:
    """An expensive function of one column, computed where some SELECT can see it."""

    table: str
    function: str
    column: str
    sight: Sight = EVERYTHING

    @property
    def name(self) -> str:
        return f"{self.function}({self.column})"

    @property
    def type(self) -> str:
        return EXPENSIVE[self.function]


@dataclass(frozen=True)
class Seen:
    """A query over tables that carry its lifts as columns, and what it sees of each table."""

    sql: str
    lifts: tuple[Lift, ...] = ()
    sights: Mapping[str, tuple[Sight, ...]] = field(default_factory=dict)  # by table


def look(sql: str, schemas: Schemas) -> Seen:
    """Lift what can be lifted, and say what the query sees."""
    try:
        tree = read_sql(sql).copy()
        known: dict[str, object] = {name: dict(kinds) for name, kinds in schemas.items()}
        tree = qualify(tree, schema=known, dialect=_DIALECT, quote_identifiers=True)
        eyes = _Eyes(schemas)
        sights = eyes.sights(tree)
        lifts = eyes.take_lifts(tree)
        return Seen(tree.sql(dialect="duckdb") if lifts else sql, lifts, sights)
    except (*NOT_UNDERSTOOD, KeyError):
        return Seen(sql)


def output_names(sql: str) -> list[str]:
    """The names of a SELECT's columns as its author wrote them; empty when unknown."""
    try:
        tree = read_sql(sql)
        return list(tree.named_selects) if isinstance(tree, exp.Query) else []
    except NOT_UNDERSTOOD:
        return []


def quote(name: str) -> str:
    """An identifier as SQL text."""
    return '"' + name.replace('"', '""') + '"'


@dataclass
class _Eyes:
    schemas: Schemas

    def sights(self, tree: exp.Expr) -> dict[str, tuple[Sight, ...]]:
        """For each table, the sight of every SELECT that reads it."""
        found: dict[str, list[Sight]] = {}
        for scope in traverse_scope(tree):
            for alias, source in scope.sources.items():
                if isinstance(source, exp.Table) and source.name in self.schemas:
                    found.setdefault(source.name, []).append(self._sight(scope, alias))
        return {table: tuple(sights) for table, sights in found.items()}

    def take_lifts(self, tree: exp.Expr) -> tuple[Lift, ...]:
        """Replace each liftable call in the tree by a column, and say which they were."""
        lifts: list[Lift] = []
        for scope in traverse_scope(tree):
            for call in list(scope.find_all(exp.Anonymous)):
                found = self._lift_of(call, scope)
                if found is not None:
                    column = call.expressions[0].copy()
                    column.set("this", exp.to_identifier(found.name, quoted=True))
                    call.replace(column)
                    lifts.append(found)
        return tuple(lifts)

    def _lift_of(self, call: exp.Anonymous, scope: Scope) -> Lift | None:
        if call.name.lower() not in EXPENSIVE or len(call.expressions) != 1:
            return None
        column = call.expressions[0]
        if not isinstance(column, exp.Column):
            return None
        source = scope.sources.get(column.table)
        if not isinstance(source, exp.Table) or source.name not in self.schemas:
            return None
        sight = self._sight(scope, column.table)
        return Lift(source.name, call.name.lower(), column.name, sight)

    def _sight(self, scope: Scope, alias: str) -> Sight:
        """Rules 2 and 3."""
        select, source = scope.expression, scope.sources[alias]
        if not isinstance(select, exp.Select) or not isinstance(source, exp.Table):
            return EVERYTHING
        if not _plain_joins(select) or source.args.get("sample") or source.args.get("pivots"):
            return EVERYTHING
        earlier = list(self.schemas)[: list(self.schemas).index(source.name)]
        key_sets: list[tuple[str, str]] = []
        keys = [*_joined_keys(scope, alias, earlier), *_keys_of_groups(scope, alias, earlier)]
        conditions: list[str] = []
        for part in _conjuncts(select):
            if _alone(part, alias, earlier):
                if (pair := _listed_keys(part)) is not None:
                    keys.append(pair)
                else:
                    own = self._with_sets(part, alias, key_sets)
                    conditions.append(own.sql(dialect="duckdb"))
        members = [
            Member(column, self._key_set(select.sql(dialect="duckdb"), key_sets))
            for column, select in keys
        ]
        return Sight(tuple(members), tuple(conditions), tuple(key_sets))

    def _with_sets(self, part: exp.Expr, alias: str, key_sets: list[tuple[str, str]]) -> exp.Expr:
        """A conjunct over the table's own columns, its subqueries replaced by key sets."""
        holder = exp.paren(part.copy())
        for inner in list(holder.find_all(exp.Subquery, exp.Select)):
            if inner.find_ancestor(exp.Subquery, exp.Select) is None:
                name = self._key_set(inner.unnest().sql(dialect="duckdb"), key_sets)
                keys = exp.select("*").from_(name)
                inner.replace(keys.subquery() if isinstance(inner, exp.Subquery) else keys)
        return _unqualified(holder, alias)

    def _key_set(self, select: str, key_sets: list[tuple[str, str]]) -> str:
        """Named after what it selects, so that the same set of several queries is one."""
        name = f"keys_{hashlib.sha256(select.encode()).hexdigest()[:12]}"
        key_sets.append((name, select))
        return name


def _conjuncts(select: exp.Select) -> list[exp.Expr]:
    """What must hold for every row that the SELECT goes on with."""
    conditions = [join.args["on"] for join in select.args.get("joins") or () if join.args.get("on")]
    if (where := select.args.get("where")) is not None:
        conditions.append(where.this)
    return [
        part
        for condition in conditions
        for part in (condition.flatten() if isinstance(condition, exp.And) else [condition])
    ]


def _plain_joins(select: exp.Select) -> bool:
    return not select.args.get("laterals") and all(
        not join.side
        and not join.method
        and not join.args.get("using")
        and join.kind.upper() in ("", "INNER", "CROSS")
        for join in select.args.get("joins") or ()
    )


Keys = tuple[str, exp.Expr]  # a column of the table, and the SELECT of the keys it must be among


def _listed_keys(part: exp.Expr) -> Keys | None:
    """`column IN (SELECT ...)`."""
    part = part.unnest()
    query = part.args.get("query") if isinstance(part, exp.In) else None
    if query is None or not isinstance(part.this, exp.Column):
        return None
    return part.this.name, query.unnest()


def _joined_keys(scope: Scope, alias: str, earlier: Sequence[str]) -> list[Keys]:
    """What equalities with tables read earlier ask of the columns of `alias`."""
    assert isinstance(scope.expression, exp.Select)
    conjuncts = _conjuncts(scope.expression)
    found: list[Keys] = []
    for part in conjuncts:
        if (pair := _join_columns(part, scope, alias, earlier)) is not None:
            mine, theirs, other = pair
            own = [one.copy() for one in conjuncts if _alone(one, theirs.table, earlier)]
            found.append((mine.name, exp.select(theirs.copy()).from_(other.copy()).where(*own)))
    return found


def _keys_of_groups(scope: Scope, alias: str, earlier: Sequence[str]) -> list[Keys]:
    """What the SELECT around a grouped one asks of its group keys: other groups do not matter,
    and so none of their rows."""
    select, around = scope.expression, scope.parent
    if around is None or not scope.is_derived_table or not isinstance(select, exp.Select):
        return []
    if not isinstance(around.expression, exp.Select) or not _plain_joins(around.expression):
        return []
    if not _only_groups(select):
        return []
    names = [name for name, source in around.sources.items() if source is scope]
    group = select.args["group"].expressions
    own = [key for key in group if isinstance(key, exp.Column) and key.table == alias]
    outputs = {
        output.alias_or_name: output.unalias().name
        for output in select.expressions
        if output.unalias() in own
    }
    return [
        (outputs[column], keys)
        for name in names
        for column, keys in _joined_keys(around, name, earlier)
        if column in outputs
    ]


def _only_groups(select: exp.Select) -> bool:
    """Does each row of a SELECT's result depend on the rows of one group alone?"""
    given = {name for name, value in select.args.items() if value}
    around = (
        {name for name, value in select.parent.args.items() if value} if select.parent else {""}
    )
    group = select.args.get("group")
    return (
        given <= {"expressions", "from_", "joins", "where", "group", "having", "order"}
        and around <= {"this", "alias"}
        and group is not None
        and {name for name, value in group.args.items() if value} <= {"expressions"}
        and not any(isinstance(node, exp.Window) for node in select.walk())
    )


def _join_columns(
    part: exp.Expr, scope: Scope, alias: str, earlier: Sequence[str]
) -> tuple[exp.Column, exp.Column, exp.Table] | None:
    """The two columns of an equality between `alias` and a table read earlier, and that one."""
    if not isinstance(part, exp.EQ):
        return None
    for mine, theirs in ((part.this, part.expression), (part.expression, part.this)):
        if isinstance(mine, exp.Column) and isinstance(theirs, exp.Column):
            other = scope.sources.get(theirs.table)
            if mine.table == alias and isinstance(other, exp.Table) and other.name in earlier:
                return mine, theirs, other
    return None


def _unqualified(tree: exp.Expr, alias: str) -> exp.Expr:
    tree = tree.copy()
    for column in tree.find_all(exp.Column):
        if column.table == alias:
            column.set("table", None)
    return tree


def _alone(part: exp.Expr, alias: str, earlier: Sequence[str]) -> bool:
    """Does this conjunct speak only of the table `alias` and of tables read earlier?"""
    if part.find(exp.AggFunc, exp.Window, exp.PositionalColumn, *_VOLATILE):
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
