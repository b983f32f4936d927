"""Reading of FROM: tables, common table expressions, subqueries, VALUES, UNNEST, and joins."""

from sqlglot import exp

from caudal.sql import error_free
from caudal.sql.planner import expressions, types
from caudal.sql.planner.algebra import (
    Constant,
    Context,
    Expr,
    Extend,
    Filter,
    Join,
    JoinKind,
    Node,
    Output,
    Relation,
    TableScan,
    Unnest,
    columns_of,
    mark,
    rename,
)
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.expressions import ExpressionReader
from caudal.sql.planner.scopes import QueryEnvironment, Scope, ScopeSource
from caudal.sql.planner.types import Type
from caudal.sql.quoting import folded

_KINDS: dict[tuple[str, str], JoinKind] = {
    ("", ""): "INNER", ("", "INNER"): "INNER", ("", "CROSS"): "INNER",
    ("LEFT", ""): "LEFT", ("LEFT", "OUTER"): "LEFT",
    ("RIGHT", ""): "RIGHT", ("RIGHT", "OUTER"): "RIGHT",
    ("FULL", ""): "FULL", ("FULL", "OUTER"): "FULL", ("", "OUTER"): "FULL",
    ("", "SEMI"): "SEMI", ("", "ANTI"): "ANTI",
}  # fmt: skip


def read_from(query: exp.Select, bound: QueryEnvironment) -> tuple[Node, Scope]:
    """Return the rows of FROM, and the names by which WHERE may call their columns."""
    clause = query.args.get("from_")
    if clause is None:
        return Constant(), Scope()
    first, *rest = _items(query)
    node, scope = _read_item(first, bound)
    for item in rest:
        node, scope = _join_item(node, scope, item, bound)
    return node, scope


def _items(query: exp.Select) -> list[tuple[exp.Expr, list[exp.Join]]]:
    """Return the items between commas, each with its joins: JOIN binds tighter than a comma."""
    items: list[tuple[exp.Expr, list[exp.Join]]] = [(query.args["from_"].this, [])]
    for join in query.args.get("joins") or ():
        if _is_comma(join):
            items.append((join.this, []))
        else:
            items[-1][1].append(join)
    return items


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(key) for key in ("kind", "side", "method", "on", "using"))


def _read_item(
    item: tuple[exp.Expr, list[exp.Join]], bound: QueryEnvironment
) -> tuple[Node, Scope]:
    node, scope = _source(item[0], bound)
    for join in item[1]:
        node, scope = _join(node, scope, join, bound)
    return node, scope


def _join_item(
    node: Node, scope: Scope, item: tuple[exp.Expr, list[exp.Join]], bound: QueryEnvironment
) -> tuple[Node, Scope]:
    """Join the item after a comma. Only UNNEST may name columns of the items before it."""
    if isinstance(item[0], exp.Unnest):
        if item[1]:
            raise UnsupportedError("a join with UNNEST on its left")
        return _unnest(node, scope, exp.Join(this=item[0]), bound)
    right, other = _read_item(item, bound)
    if scope.merged.keys() & other.merged.keys():
        raise UnsupportedError("two joins that share a column by USING")
    both = Scope(
        [*scope.sources, *other.sources],
        [*scope.star, *other.star],
        {**scope.merged, **other.merged},
    )
    return Join(node, right, "INNER", ()), both


def _source(item: exp.Expr, bound: QueryEnvironment) -> tuple[Node, Scope]:
    relation = _relation(item, bound)
    alias = item.args.get("alias")
    names = tuple(c.name for c in alias.args.get("columns") or ()) if alias else ()
    relation = rename(relation, names)
    name = item.alias_or_name or None
    return relation.node, Scope([ScopeSource(name, relation.outputs)], list(relation.outputs))


def _relation(item: exp.Expr, bound: QueryEnvironment) -> Relation:
    extra = {key for key, value in item.args.items() if value} - {"this", "alias", "expressions"}
    if isinstance(item, exp.Table) and extra == {"db"} and folded(item.db) == "main":
        return _table(item, bound)  # never a common table expression
    if extra:
        raise UnsupportedError(f"a table with {', '.join(sorted(extra))}")
    if isinstance(item, exp.Values):
        return _values(item, bound.context)
    if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
        return bound.query(item.this)
    if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
        return bound.named(item.name) or _table(item, bound)
    raise UnsupportedError("a table function in FROM")


def _table(item: exp.Table, bound: QueryEnvironment) -> Relation:
    found = bound.tables.get(folded(item.name))
    if found is None:
        raise UnsupportedError(f"{item.name} is not a table")
    name, schema = found
    numbered = {bound.context.column(types.normal(kind)): column for column, kind in schema.items()}
    bound.context.stored.update(map(folded, schema))
    outputs = tuple(Output(column, number) for number, column in numbered.items())
    return Relation(TableScan(name, numbered), outputs)


def _values(item: exp.Values, context: Context) -> Relation:
    reader = ExpressionReader(context, Scope(), _no_subquery)
    rows = [
        [reader.expr(cell) for cell in (row.expressions if isinstance(row, exp.Tuple) else [row])]
        for row in item.expressions
    ]
    columns = [
        context.column(types.common(row[place].type for row in rows))
        for place in range(len(rows[0]))
    ]
    cells = tuple("(" + ", ".join(cell.text for cell in row) + ")" for row in rows)
    outputs = tuple(Output(f"col{place}", column) for place, column in enumerate(columns))
    return Relation(Constant(tuple(columns), cells), outputs)


def _no_subquery(query: exp.Query) -> Relation:
    raise UnsupportedError("a subquery inside VALUES")


def _join(left: Node, scope: Scope, join: exp.Join, bound: QueryEnvironment) -> tuple[Node, Scope]:
    kind = _KINDS.get((join.side, join.kind))
    if kind is None or join.method:
        raise UnsupportedError(f"a {join.method or join.kind} join")
    if isinstance(join.this, exp.Unnest):
        return _unnest(left, scope, join, bound)
    right, other = _source(join.this, bound)
    both = Scope([*scope.sources, *other.sources], [*scope.star, *other.star], dict(scope.merged))
    if join.args.get("using"):
        return _using(Join(left, right, kind, ()), scope, other, join, bound.context)
    conditions: tuple[Expr, ...] = ()
    if join.args.get("on") is not None:
        reader = ExpressionReader(bound.context, both, bound.query)
        conditions = tuple(reader.expr(part) for part in expressions.conjuncts(join.args["on"]))
    if any(condition.subqueries for condition in conditions) and kind != "INNER":
        raise UnsupportedError("a subquery in the condition of an outer join")
    node = Join(left, right, kind, conditions)
    return node, scope if kind in ("SEMI", "ANTI") else both


def _using(
    join: Join, scope: Scope, other: Scope, clause: exp.Join, context: Context
) -> tuple[Node, Scope]:
    """Join by USING: the columns of both sides become the one that is not null-extended."""
    conditions, merged, computed = [], dict(scope.merged), dict[int, Expr]()
    for identifier in clause.args["using"]:
        name = folded(identifier.name)
        one, two = scope.find(name), other.find(name)
        if one is None or two is None:
            raise UnsupportedError(f"USING ({identifier.name}) is not a column of both sides")
        conditions.append(_equality(_column(one, context), _column(two, context)))
        merged[name] = two if join.kind == "RIGHT" else one
        if join.kind == "FULL":
            kind = types.common((context.types[one], context.types[two]))
            merged[name] = context.column(kind)
            computed[merged[name]] = Expr(f"coalesce({mark(one)}, {mark(two)})", kind)
    node: Node = Join(join.left, join.right, join.kind, tuple(conditions))
    if computed:
        node = Extend(node, computed)
    if join.kind in ("SEMI", "ANTI"):
        return node, scope
    used = {folded(identifier.name) for identifier in clause.args["using"]}
    star = [
        Output(output.name, merged[folded(output.name)])
        if output.name is not None and folded(output.name) in used
        else output
        for output in scope.star
    ]
    star += [o for o in other.star if o.name is None or folded(o.name) not in used]
    return node, Scope([*scope.sources, *other.sources], star, merged)


def _unnest(
    left: Node, scope: Scope, join: exp.Join, bound: QueryEnvironment
) -> tuple[Node, Scope]:
    item = join.this
    condition = join.args.get("on")
    always = condition is None or (isinstance(condition, exp.Boolean) and condition.this)
    if _KINDS[join.side, join.kind] != "INNER" or not always or join.args.get("using"):
        raise UnsupportedError("an outer join with UNNEST")
    if len(item.expressions) != 1 or item.args.get("offset"):
        raise UnsupportedError("UNNEST of several lists")
    expr = ExpressionReader(bound.context, scope, bound.query).expr(item.expressions[0])
    if expr.type is None or not expr.type.endswith("[]"):
        raise UnsupportedError("UNNEST of something that is not known to be a list")
    column = bound.context.column(expr.type[:-2])
    alias = item.args.get("alias")
    names = [c.name for c in alias.args.get("columns") or ()] if alias else []
    outputs = (Output(names[0] if names else "unnest", column),)
    source = ScopeSource(alias.name if alias else None, outputs)
    node = Unnest(left, column, expr)
    return node, Scope([*scope.sources, source], [*scope.star, *outputs], dict(scope.merged))


def semi_join(node: Node, kind: JoinKind, right: Relation, conditions: list[Expr]) -> Node:
    """Return a join. Conditions that name the right side alone become filters of that side."""
    inside = columns_of(right.node)
    own = [c for c in conditions if c.columns and c.columns <= inside and c.may_move]
    filtered: Node = right.node
    for condition in own:
        filtered = Filter(filtered, condition)
    return Join(node, filtered, kind, tuple(c for c in conditions if c not in own))


def equality(one: Expr, two: Expr) -> Expr:
    """Return the equality by which `one IN (SELECT two)` compares.

    DuckDB casts both sides to the type of their UNION. For most types that is how `=` compares too.
    Of DECIMAL(4,1) and DECIMAL(38,0), IN compares whole numbers, and `=` does not.
    """
    if not _compared_alike(one.type, two.type):
        raise UnsupportedError("IN over values of types that = may compare in another way")
    return _equality(one, two)


def _compared_alike(one: Type, two: Type) -> bool:
    """Return whether IN and `=` are known to compare values of these types in the same way."""
    if types.is_small(one) and types.is_small(two):
        return True
    known = types.is_certain(one) and types.is_certain(two)
    return known and error_free.comparable(one, two)


def _equality(one: Expr, two: Expr) -> Expr:
    known = types.is_certain(one.type) and types.is_certain(two.type)
    safe = one.safe and two.safe and known and error_free.comparable(one.type, two.type)
    text = f"({one.text}) = ({two.text})"
    sides = (one, two) if safe else None
    mixed = expressions.is_mixed(one, two)
    return Expr(text, "BOOLEAN", one.costly | two.costly, sides, safe=safe, mixed=mixed)


def _column(column: int, context: Context) -> Expr:
    return Expr(mark(column), context.types[column], safe=True)
