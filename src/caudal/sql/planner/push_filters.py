"""Filters move towards the tables.

Rules
1. A filter passes a join towards the side whose columns it names, unless the join null-extends that
   side. A filter that names both sides of an inner join becomes a condition of the join.
2. A condition of a join that names one side alone filters that side, if rows of that side without a
   partner have no effect.
3. A filter passes a projection and UNNEST if it names none of their columns, and grouping if it
   names group keys only. It passes no window function, no LIMIT and no set operation.
4. Only a filter that cannot raise an error moves: at its new place it is evaluated on rows that the
   query as written would never have shown to it.
"""

from dataclasses import replace

from caudal.sql.planner.algebra import (
    Aggregate,
    Context,
    Expr,
    Extend,
    Filter,
    Join,
    Node,
    Unnest,
    columns_of,
    with_children,
)


def push_filters(node: Node, context: Context) -> Node:
    """Move every filter as far down as it may go.

    Example::

        query:
            SELECT sales.id FROM sales LEFT JOIN items ON sales.item = items.item AND weight > 1
            WHERE shop = 'a'
        before:
            filter sales.shop = 'a'
              left join on sales.item = items.item and items.weight > 1
                scan sales
                scan items
        after:
            left join on sales.item = items.item
              filter sales.shop = 'a'
                scan sales
              filter items.weight > 1
                scan items
    """
    return _push(node, [])


def _push(node: Node, filters: list[Expr]) -> Node:
    """Return the node under these filters, each as far down as it may go."""
    match node:
        case Filter():
            return _push(node.child, [node.predicate, *filters])
        case Extend():
            below, above = _split_in_order(filters, columns_of(node.child))
            return _filtered(replace(node, child=_push(node.child, below)), above)
        case Unnest():
            below, above = _split(filters, columns_of(node.child))
            return _filtered(replace(node, child=_push(node.child, below)), above)
        case Aggregate():
            below, above = _split(filters, frozenset(node.keys))
            return _filtered(replace(node, child=_push(node.child, below)), above)
        case Join():
            return _push_into_join(node, filters)
        case _:
            return _filtered(with_children(node, lambda child: _push(child, [])), filters)


def _push_into_join(join: Join, filters: list[Expr]) -> Node:
    left, right = columns_of(join.left), columns_of(join.right)
    down_left: list[Expr] = []
    down_right: list[Expr] = []
    conditions, above = list(join.conditions), list[Expr]()
    for predicate in filters:
        if not predicate.may_move or not predicate.columns:
            above.append(predicate)
        elif predicate.columns <= left and not join.null_extends("left"):
            down_left.append(predicate)
        elif predicate.columns <= right and not join.null_extends("right"):
            down_right.append(predicate)
        elif join.kind == "INNER":
            conditions.append(predicate)
        else:
            above.append(predicate)
    kept: list[Expr] = []
    for condition in conditions:
        if not condition.may_move or not condition.columns:
            kept.append(condition)
        elif condition.columns <= left and join.needs_partner("left"):
            down_left.append(condition)
        elif condition.columns <= right and join.needs_partner("right"):
            down_right.append(condition)
        else:
            kept.append(condition)
    new = Join(_push(join.left, down_left), _push(join.right, down_right), join.kind, tuple(kept))
    return _filtered(new, above)


def _split(filters: list[Expr], columns: frozenset[int]) -> tuple[list[Expr], list[Expr]]:
    """Return the filters that may move below a node, and those that stay above it."""
    below = [f for f in filters if f.columns and f.columns <= columns and f.may_move]
    return below, [f for f in filters if f not in below]


def _split_in_order(filters: list[Expr], columns: frozenset[int]) -> tuple[list[Expr], list[Expr]]:
    """Do the same for a node that keeps every row.

    Such a node shows a filter the same rows above and below it. So a filter that can raise an error
    may pass too, unless it would then be evaluated before a filter that stays.
    """
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
