"""Rows are grouped before an inner join where the groups can be merged afterwards.

If all aggregates over an inner join read one side, that side is first grouped by the columns that
the join and the outer grouping name. The join then reads one row per group, and the outer grouping
merges the partial results: counts and sums are added, minima and maxima compared. The side must
be read straight from a table, no aggregate may raise on rows that the join would have dropped, and
the condition of the join must not tell values of a group apart.
"""

from caudal.sql.planner import types
from caudal.sql.planner.aggregate_safety import cannot_raise
from caudal.sql.planner.algebra import (
    Aggregate,
    Context,
    Expr,
    Extend,
    Filter,
    FunctionCall,
    Join,
    Node,
    TableScan,
    columns_of,
    mark,
    with_children,
)
from caudal.sql.planner.group_forms import keep_groups_whole

_MERGED_BY = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


def group_before_joins(node: Node, context: Context) -> Node:
    """Group one side of an inner join before the join, and merge the groups after it.

    Example::

        query:
            SELECT items.name, sum(sales.paid) AS total FROM sales JOIN items
            ON sales.item = items.item GROUP BY items.name
        before:
            group by items.name: total = sum(sales.paid)
              inner join on sales.item = items.item
                scan sales
                scan items
        after:
            group by items.name: total = sum(#1)
              inner join on sales.item = items.item
                group by sales.item: #1 = sum(sales.paid)
                  scan sales
                scan items
    """
    node = with_children(node, lambda child: group_before_joins(child, context))
    if not isinstance(node, Aggregate) or not isinstance(node.child, Join):
        return node
    join = node.child
    if join.kind != "INNER" or any(condition.subqueries for condition in join.conditions):
        return node
    if not node.calls or not all(map(_can_be_merged, node.calls.values())):
        return node
    used = frozenset[int]().union(
        *(expr.columns for call in node.calls.values() for expr in call.expressions())
    )
    for side in (join.right, join.left):
        own = columns_of(side)
        whole_groups = keep_groups_whole(join.conditions, own, context)
        if used <= own and whole_groups and _reads_a_table(side):
            return _group_side(node, join, side, context)
    return node


def _group_side(node: Aggregate, join: Join, side: Node, context: Context) -> Node:
    named = frozenset[int]().union(*(c.columns for c in join.conditions))
    keys = tuple(sorted((named | set(node.keys)) & columns_of(side)))
    if not keys:
        return node
    parts = {column: context.column(call.type) for column, call in node.calls.items()}
    grouped = Aggregate(side, keys, {parts[c]: call for c, call in node.calls.items()})
    left, right = (grouped if child is side else child for child in (join.left, join.right))
    merged: dict[int, FunctionCall] = {}
    finals: dict[int, Expr] = {}
    for column, call in node.calls.items():
        part = Expr(mark(parts[column]), call.type)
        name = _MERGED_BY[call.name]
        if call.name == "count":
            total = context.column("HUGEINT")
            merged[total] = FunctionCall(name, (part,), type="HUGEINT")
            # Without keys, a sum over no rows is null where a count is zero.
            finals[column] = Expr(f"CAST(coalesce({mark(total)}, 0) AS BIGINT)", "BIGINT")
        else:
            merged[column] = FunctionCall(name, (part,), type=call.type)
    new = Aggregate(Join(left, right, join.kind, join.conditions), node.keys, merged)
    return Extend(new, finals) if finals else new


def _can_be_merged(call: FunctionCall) -> bool:
    if call.distinct or call.order or call.name not in _MERGED_BY or len(call.arguments) > 1:
        return False
    is_exact = call.name != "sum" or types.is_exact(call.arguments[0].type)
    return is_exact and cannot_raise(call)


def _reads_a_table(node: Node) -> bool:
    while isinstance(node, (Filter, Extend)):
        node = node.child
    return isinstance(node, TableScan)
