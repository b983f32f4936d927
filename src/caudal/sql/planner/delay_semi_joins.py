"""Projections and grouping come before semi and anti joins.

A semi or anti join keeps or drops rows and adds no column. If its condition names group keys only,
it keeps or drops whole groups, so the groups may be made first: then the join has fewer rows to
read. What now comes first meets rows that the join would have dropped, so it must not raise.
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
    return _delay_here(with_children(node, lambda child: delay_semi_joins(child, context)))


def _delay_here(node: Node) -> Node:
    """Apply the rule to one node whose children are done."""
    if not isinstance(node, (Extend, Aggregate)):
        return node
    join = node.child
    if not _keeps_or_drops_rows(join) or not _may_precede(node, join):
        return node
    return replace(join, left=_delay_here(replace(node, child=join.left)))


def _keeps_or_drops_rows(node: Node) -> TypeGuard[Join]:
    return (
        isinstance(node, Join)
        and node.kind in ("SEMI", "ANTI")
        and not any(condition.subqueries for condition in node.conditions)
    )


def _may_precede(node: Extend | Aggregate, join: Join) -> bool:
    if isinstance(node, Extend):
        return all(expr.safe for expr in node.computed.values())
    named = frozenset[int]().union(*(condition.columns for condition in join.conditions))
    whole_groups = named & columns_of(join.left) <= set(node.keys)
    return bool(node.keys) and whole_groups and all(map(cannot_raise, node.calls.values()))
