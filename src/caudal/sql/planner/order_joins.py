"""The order of inner joins: what an equality connects is never crossed.

FROM may list tables in any order; joined in that order, a star of dimensions multiplies them with
each other before the table that connects them comes. So where a block of inner joins, as written,
crosses tables that an equality connects, it is joined anew:

1. Begin with the relation that seems smallest (`_size`), then always take one that an equality
   connects to what is joined already: the smallest, then the one with most equalities, then the
   first in FROM.
2. What no equality connects forms a component of its own; components are crossed at the very end.
3. Equalities are used as soon as their columns are there. All other conditions wait for the last
   join: they may raise, and then only on rows that the equalities left over.

Sizes are not known here, and rows may come in another order than as written, always the same.
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
    new = _joined(leaves, conditions, equalities)
    return new if _crosses(new, equalities) < _crosses(written, equalities) else written


def _block(node: Node) -> tuple[list[Node], list[Expr]]:
    """The relations that a block of inner joins reads, as written, and all its conditions."""
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
    """How many joins of a block no equality decides."""
    if not isinstance(node, Join) or node.kind != "INNER":
        return 0
    here = not _links(columns_of(node.left), columns_of(node.right), equalities)
    return here + _crosses(node.left, equalities) + _crosses(node.right, equalities)


def _links(one: frozenset[int], two: frozenset[int], equalities: Sequence[Expr]) -> int:
    """How many equalities have one side in each of the two."""
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
    """Some of a block's relations, joined."""

    node: Node
    size: int
    place: int
    columns: frozenset[int]


def _joined(leaves: list[Node], conditions: list[Expr], equalities: list[Expr]) -> Node:
    waiting = [
        _JoinedPart(leaf, _size(leaf), place, columns_of(leaf)) for place, leaf in enumerate(leaves)
    ]
    components = []
    while waiting:
        part = min(waiting, key=lambda one: (one.size, one.place))
        waiting.remove(part)
        while (found := _nearest(part, waiting, equalities)) is not None:
            waiting.remove(found)
            part = _with(part, found, equalities)
        components.append(part)
    whole, *rest = components
    while rest:
        found = _nearest(whole, rest, equalities) or rest[0]
        rest.remove(found)
        whole = _with(whole, found, equalities)
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


def _with(part: _JoinedPart, other: _JoinedPart, equalities: list[Expr]) -> _JoinedPart:
    """Both joined by the equalities that hold between them and inside neither of them alone."""
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
    """A guess: 0 for one row or few, 1 for what was filtered, 2 for groups, 3 for a table."""
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
