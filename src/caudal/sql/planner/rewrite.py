"""Moves work towards the rows: filters below joins, aggregates below joins that only select groups.

Every rule here keeps the multiset of rows, nulls included:
1. A filter passes a join towards the side whose columns it names, unless that side is
   null-extended. What names both sides of an inner join becomes a condition of it.
2. A condition of a join that names one side alone filters that side, if the join keeps no row of
   that side without a partner.
3. Semi and anti joins on group keys keep or drop whole groups, so grouping may come first.
4. What moves cannot raise (`sql/error_free.py`): earlier it meets rows that the query itself would
   never have shown to it.
5. If all aggregates over an inner join read one side, that side may be grouped by what the join and
   the outer grouping need of it, and the parts added up afterwards.
"""

from collections.abc import Iterable

from caudal.sql.planner import types
from caudal.sql.planner.algebra import (
    Aggregate,
    Context,
    Expr,
    Extend,
    Filter,
    FunctionCall,
    Join,
    Node,
    SetOperation,
    TableScan,
    Top,
    Union,
    Unnest,
    Windows,
    columns_of,
    mark,
)
from caudal.sql.planner.order_joins import ordered


def rewritten(node: Node, context: Context) -> Node:
    """The node with every rule applied."""
    return _grouped_early(ordered(push_filters(node)), context)


def push_filters(node: Node) -> Node:
    """Return the node with every filter as far down as it may go (rules 1 and 2)."""
    return _pushed(node, [])


def _pushed(node: Node, filters: list[Expr]) -> Node:
    """The node under these filters, each as far down as it may go."""
    match node:
        case Filter():
            return _pushed(node.child, [node.predicate, *filters])
        case Extend():
            below, above = _split_in_order(filters, columns_of(node.child))
            return _filtered(Extend(_pushed(node.child, below), node.computed), above)
        case Unnest():
            below, above = _split(filters, columns_of(node.child))
            return _filtered(Unnest(_pushed(node.child, below), node.column, node.expr), above)
        case Aggregate():
            below, above = _split(filters, frozenset(node.keys))
            return _filtered(Aggregate(_pushed(node.child, below), node.keys, node.calls), above)
        case Join():
            return _pushed_join(node, filters)
        case Windows():
            return _filtered(
                Windows(_pushed(node.child, []), node.computed, node.partitions), filters
            )
        case Top():
            child = _pushed(node.child, [])
            return _filtered(Top(child, node.order, node.limit, node.offset), filters)
        case Union():
            children = tuple(_pushed(child, []) for child in node.children)
            return _filtered(Union(children, node.inputs, node.columns), filters)
        case SetOperation():
            left, right = _pushed(node.left, []), _pushed(node.right, [])
            new = SetOperation(left, right, node.operation, node.inputs, node.columns)
            return _filtered(new, filters)
        case _:
            return _filtered(node, filters)


def _pushed_join(join: Join, filters: list[Expr]) -> Node:
    left, right = columns_of(join.left), columns_of(join.right)
    down_left: list[Expr] = []
    down_right: list[Expr] = []
    conditions, above = list(join.conditions), list[Expr]()
    for predicate in filters:
        if not predicate.may_move or not predicate.columns:
            above.append(predicate)
        elif predicate.columns <= left and join.kind in ("INNER", "LEFT", "SEMI", "ANTI"):
            down_left.append(predicate)
        elif predicate.columns <= right and join.kind in ("INNER", "RIGHT"):
            down_right.append(predicate)
        elif join.kind == "INNER":
            conditions.append(predicate)
        else:
            above.append(predicate)
    kept: list[Expr] = []
    for condition in conditions:
        if not condition.may_move or not condition.columns:
            kept.append(condition)
        elif condition.columns <= left and join.kind in ("INNER", "RIGHT", "SEMI"):
            down_left.append(condition)
        elif condition.columns <= right and join.kind in ("INNER", "LEFT", "SEMI", "ANTI"):
            down_right.append(condition)
        else:
            kept.append(condition)
    new = Join(
        _pushed(join.left, down_left), _pushed(join.right, down_right), join.kind, tuple(kept)
    )
    return _filtered(new, above)


def _split(filters: list[Expr], columns: frozenset[int]) -> tuple[list[Expr], list[Expr]]:
    """The filters that may come earlier, and those that stay."""
    below = [f for f in filters if f.columns and f.columns <= columns and f.may_move]
    return below, [f for f in filters if f not in below]


def _split_in_order(filters: list[Expr], columns: frozenset[int]) -> tuple[list[Expr], list[Expr]]:
    """The same where all rows stay: what can raise may pass too, unless it would overtake."""
    below, above = list[Expr](), list[Expr]()
    for predicate in filters:
        named = predicate.columns and predicate.columns <= columns and not predicate.subqueries
        passes = named and (predicate.may_move or not above)
        (below if passes else above).append(predicate)
    return below, above


def _filtered(node: Node, filters: list[Expr]) -> Node:
    for predicate in filters:
        node = Filter(node, predicate)
    return node


def _grouped_early(node: Node, context: Context) -> Node:
    node = _mapped(node, context)
    if isinstance(node, Extend) and _selects_rows(node.child) and _all_safe(node.computed.values()):
        join = node.child
        assert isinstance(join, Join)
        inner = Extend(join.left, node.computed)
        return Join(_grouped_early(inner, context), join.right, join.kind, join.conditions)
    if not isinstance(node, Aggregate) or not isinstance(node.child, Join):
        return node
    join = node.child
    if _selects_rows(join):
        named = frozenset[int]().union(*(c.columns for c in join.conditions))
        safe = all(_is_safe(call) for call in node.calls.values())
        if named & columns_of(join.left) <= set(node.keys) and node.keys and safe:
            grouped = Aggregate(join.left, node.keys, node.calls)
            left = _grouped_early(grouped, context)
            return Join(left, join.right, join.kind, join.conditions)
        return node
    return _partly_grouped(node, join, context)


def _selects_rows(node: Node) -> bool:
    return (
        isinstance(node, Join)
        and node.kind in ("SEMI", "ANTI")
        and not any(condition.subqueries for condition in node.conditions)
    )


def _mapped(node: Node, context: Context) -> Node:
    """The node over children that were rewritten."""

    def below(child: Node) -> Node:
        return _grouped_early(child, context)

    match node:
        case Filter():
            return Filter(below(node.child), node.predicate)
        case Extend():
            return Extend(below(node.child), node.computed)
        case Windows():
            return Windows(below(node.child), node.computed, node.partitions)
        case Unnest():
            return Unnest(below(node.child), node.column, node.expr)
        case Aggregate():
            return Aggregate(below(node.child), node.keys, node.calls)
        case Join():
            return Join(below(node.left), below(node.right), node.kind, node.conditions)
        case Top():
            return Top(below(node.child), node.order, node.limit, node.offset)
        case Union():
            return Union(tuple(below(c) for c in node.children), node.inputs, node.columns)
        case SetOperation():
            left, right = below(node.left), below(node.right)
            return SetOperation(left, right, node.operation, node.inputs, node.columns)
        case _:
            return node


_ADDED_UP = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


def _partly_grouped(node: Aggregate, join: Join, context: Context) -> Node:
    """Rule 5, where the side is read straight from a table and every part can be added up."""
    if join.kind != "INNER" or any(condition.subqueries for condition in join.conditions):
        return node
    if not node.calls or not all(_can_be_added_up(call) for call in node.calls.values()):
        return node
    if not all(_is_safe(call) for call in node.calls.values()):
        return node
    used = frozenset[int]().union(
        *(expr.columns for call in node.calls.values() for expr in call.expressions())
    )
    for side in (join.right, join.left):
        own = columns_of(side)
        if used <= own and _is_scan(side):
            return _with_parts(node, join, side, context)
    return node


def _with_parts(node: Aggregate, join: Join, side: Node, context: Context) -> Node:
    own = columns_of(side)
    named = frozenset[int]().union(*(c.columns for c in join.conditions))
    keys = tuple(sorted((named | set(node.keys)) & own))
    if not keys:
        return node
    parts = {column: context.column(call.type) for column, call in node.calls.items()}
    grouped = Aggregate(side, keys, {parts[c]: call for c, call in node.calls.items()})
    left, right = (grouped if child is side else child for child in (join.left, join.right))
    sums: dict[int, FunctionCall] = {}
    finals: dict[int, Expr] = {}
    for column, call in node.calls.items():
        part = Expr(mark(parts[column]), call.type)
        name = _ADDED_UP[call.name]
        if call.name == "count":
            total = context.column("HUGEINT")
            sums[total] = FunctionCall(name, (part,), type="HUGEINT")
            # Without keys a sum over no rows is null where a count is zero.
            finals[column] = Expr(f"CAST(coalesce({mark(total)}, 0) AS BIGINT)", "BIGINT")
        else:
            sums[column] = FunctionCall(name, (part,), type=call.type)
    new = Aggregate(Join(left, right, join.kind, join.conditions), node.keys, sums)
    return Extend(new, finals) if finals else new


def _can_be_added_up(call: FunctionCall) -> bool:
    if call.distinct or call.order or call.name not in _ADDED_UP or len(call.arguments) > 1:
        return False
    return call.name != "sum" or types.is_exact(call.arguments[0].type)


_NEVER_RAISE = ("count", "min", "max", "bool_and", "bool_or", "first", "any_value", "list")


def _is_safe(call: FunctionCall) -> bool:
    """Whether an aggregate gives a value whatever rows are added to it."""
    if not _all_safe(call.expressions()):
        return False
    return call.name in _NEVER_RAISE or (
        call.name == "sum" and types.sums_have_room(call.arguments[0].type)
    )


def _all_safe(exprs: Iterable[Expr]) -> bool:
    return all(expr.safe for expr in exprs)


def _is_scan(node: Node) -> bool:
    while isinstance(node, (Filter, Extend)):
        node = node.child
    return isinstance(node, TableScan)
