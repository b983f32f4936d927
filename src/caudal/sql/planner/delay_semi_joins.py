"""Projections and grouping come before semi and anti joins.

A semi or anti join keeps or drops rows and adds no column. If its condition names group keys only,
and cannot tell values of a group apart, it keeps or drops whole groups. So the groups may be made
first: then the join has fewer rows to read. What now comes first meets rows that the join would
have dropped, so it must not raise.
"""

from dataclasses import replace
from typing import TypeGuard

from caudal.sql.planner.aggregate_safety import cannot_raise
from caudal.sql.planner.algebra import (
    Aggregate,
    Context,
    Extend,
    Join,
    Node,
    columns_of,
    with_children,
)
from caudal.sql.planner.group_forms import keep_groups_whole


def delay_semi_joins(node: Node, context: Context) -> Node:
    """Move semi and anti joins above the projections and the grouping that read them.

    Example::

        query:
            SELECT item, count(*) FROM sales WHERE item IN (SELECT item FROM items) GROUP BY item
        before:
            group by sales.item: count(*)
              semi join on sales.item = items.item
                scan sales
                scan items
        after:
            semi join on sales.item = items.item
              group by sales.item: count(*)
                scan sales
              scan items
    """
    node = with_children(node, lambda child: delay_semi_joins(child, context))
    return _delay_here(node, context)


def _delay_here(node: Node, context: Context) -> Node:
    """Apply the rule to one node whose children are done."""
    if not isinstance(node, (Extend, Aggregate)):
        return node
    join = node.child
    if not _keeps_or_drops_rows(join) or not _may_precede(node, join, context):
        return node
    return replace(join, left=_delay_here(replace(node, child=join.left), context))


def _keeps_or_drops_rows(node: Node) -> TypeGuard[Join]:
    return (
        isinstance(node, Join)
        and node.kind in ("SEMI", "ANTI")
        and not any(condition.subqueries for condition in node.conditions)
    )


def _may_precede(node: Extend | Aggregate, join: Join, context: Context) -> bool:
    if isinstance(node, Extend):
        return all(expr.safe for expr in node.computed.values())
    named = frozenset[int]().union(*(condition.columns for condition in join.conditions))
    own = columns_of(join.left)
    whole_groups = named & own <= set(node.keys) and keep_groups_whole(
        join.conditions, own, context
    )
    return bool(node.keys) and whole_groups and all(map(cannot_raise, node.calls.values()))
