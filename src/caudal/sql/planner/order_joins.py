"""Inner joins are ordered so that tables which an equality connects are not crossed.

FROM may list tables in any order. Joined in that order, the dimensions of a star schema may be
multiplied with each other before they are joined with the table that connects them. So a block of
inner joins that crosses connected tables is joined in a new order:

1. Begin with the relation that seems smallest (`_size`). Then always take a relation that an
   equality connects with those already joined: the smallest; among these the one with most
   equalities; among these the first in FROM.
2. Relations that no equality connects are crossed at the end.
3. An equality is used as soon as its columns are there. All other conditions are evaluated in the
   last join: they may raise an error, so they must only see rows that pass the equalities.

Sizes are guessed. Rows may come in another order than written, but always in the same order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from caudal.sql.planner.algebra import (
    Aggregate,
    Constant,
    Context,
    Expr,
    Extend,
    Filter,
    Join,
    Node,
    Top,
    columns_of,
    with_children,
)


def order_joins(node: Node, context: Context) -> Node:
    """Order the inner joins of every block so that no more tables are crossed than needed.

    Example::

        query:
            SELECT count(*) FROM items, shops, sales
            WHERE sales.item = items.item AND sales.shop = shops.shop
        before:
            group by nothing: count(*)
              filter sales.shop = shops.shop
                filter sales.item = items.item
                  inner join
                    inner join
                      scan items
                      scan shops
                    scan sales
        after push_filters:
            group by nothing: count(*)
              inner join on sales.item = items.item and sales.shop = shops.shop
                inner join
                  scan items
                  scan shops
                scan sales
        after:
            group by nothing: count(*)
              inner join on sales.shop = shops.shop
                inner join on sales.item = items.item
                  scan items
                  scan sales
                scan shops
    """
    if not isinstance(node, Join) or node.kind != "INNER":
        return with_children(node, lambda child: order_joins(child, context))
    leaves, conditions = _block(node)
    leaves = [order_joins(leaf, context) for leaf in leaves]
    equalities = [one for one in conditions if one.sides is not None and not one.subqueries]
    written = _as_written(node, iter(leaves).__next__)
    if len(leaves) < 3 or not _crosses(written, equalities):
        return written
    new = _join_all(leaves, conditions, equalities)
    return new if _crosses(new, equalities) < _crosses(written, equalities) else written


def _block(node: Node) -> tuple[list[Node], list[Expr]]:
    """Return the relations of a block of inner joins, as written, and all its conditions."""
    if not isinstance(node, Join) or node.kind != "INNER":
        return [node], []
    left, right = _block(node.left), _block(node.right)
    return [*left[0], *right[0]], [*left[1], *right[1], *node.conditions]


def _as_written(node: Node, next_leaf: Callable[[], Node]) -> Node:
    if not isinstance(node, Join) or node.kind != "INNER":
        return next_leaf()
    left, right = _as_written(node.left, next_leaf), _as_written(node.right, next_leaf)
    return Join(left, right, node.kind, node.conditions)


def _crosses(node: Node, equalities: Sequence[Expr]) -> int:
    """Return how many joins of a block have no equality."""
    if not isinstance(node, Join) or node.kind != "INNER":
        return 0
    here = not _links(columns_of(node.left), columns_of(node.right), equalities)
    return here + _crosses(node.left, equalities) + _crosses(node.right, equalities)


def _links(one: frozenset[int], two: frozenset[int], equalities: Sequence[Expr]) -> int:
    """Return how many equalities have one side in each of the two relations."""
    return sum(_connects(equality, one, two) for equality in equalities)


def _connects(equality: Expr, one: frozenset[int], two: frozenset[int]) -> bool:
    if equality.sides is None:
        return False
    left, right = (side.columns for side in equality.sides)
    if not left or not right:
        return False
    return (left <= one and right <= two) or (left <= two and right <= one)


@dataclass(frozen=True)
class _JoinedPart:
    """Some relations of a block, joined."""

    node: Node
    size: int
    place: int
    columns: frozenset[int]


def _join_all(leaves: list[Node], conditions: list[Expr], equalities: list[Expr]) -> Node:
    waiting = [
        _JoinedPart(leaf, _size(leaf), place, columns_of(leaf)) for place, leaf in enumerate(leaves)
    ]
    components = []
    while waiting:
        part = min(waiting, key=lambda one: (one.size, one.place))
        waiting.remove(part)
        while (found := _nearest(part, waiting, equalities)) is not None:
            waiting.remove(found)
            part = _join_parts(part, found, equalities)
        components.append(part)
    whole, *rest = components
    while rest:
        found = _nearest(whole, rest, equalities) or rest[0]
        rest.remove(found)
        whole = _join_parts(whole, found, equalities)
    top = whole.node
    assert isinstance(top, Join)
    late = tuple(one for one in conditions if one not in equalities)
    return Join(top.left, top.right, top.kind, (*top.conditions, *late))


def _nearest(
    part: _JoinedPart, others: list[_JoinedPart], equalities: list[Expr]
) -> _JoinedPart | None:
    linked = [(one, _links(part.columns, one.columns, equalities)) for one in others]
    found = [(one.size, -links, one.place, one) for one, links in linked if links]
    return min(found, key=lambda ranked: ranked[:3])[3] if found else None


def _join_parts(part: _JoinedPart, other: _JoinedPart, equalities: list[Expr]) -> _JoinedPart:
    """Join two parts by the equalities that need columns of both."""
    both = part.columns | other.columns
    conditions = tuple(
        one
        for one in equalities
        if one.columns <= both
        and not one.columns <= part.columns
        and not one.columns <= other.columns
    )
    node = Join(part.node, other.node, "INNER", conditions)
    return _JoinedPart(node, part.size, part.place, both)


def _size(node: Node) -> int:
    """Return a guess: 0 for one row or few, 1 for filtered rows, 2 for groups, 3 for a table."""
    match node:
        case Constant() | Aggregate(keys=()):
            return 0
        case Top(limit=limit) if limit is not None:
            return 0
        case Filter():
            return min(_size(node.child), 1)
        case Aggregate():
            return 2
        case Extend():
            return _size(node.child)
        case _:
            return 3
