"""ORDER BY inside, LIMIT or OFFSET outside: the order moves up to where rows are cut.

DuckDB keeps the order of a subquery through conditions and projections, so a LIMIT around it takes
the first rows of that order. Stages keep no order. So the order must stand where the rows are cut.

1. Conditions and projections keep it, if they hold no subqueries (DuckDB joins these).
2. Groups have no order. As for every LIMIT without ORDER BY, their columns decide (`lower.py`).
3. Whether anything else keeps it, DuckDB decides while it runs. Such a query is not split.
"""

from caudal.sql.planner.algebra import (
    Aggregate,
    Constant,
    Context,
    Expr,
    Extend,
    Filter,
    Join,
    Node,
    SetOperation,
    TableScan,
    Top,
    Union,
    Unnest,
    Windows,
    mark,
    with_children,
)
from caudal.sql.planner.dialect import UnsupportedError

Order = tuple[tuple[Expr, str], ...]


def lift_orders(node: Node, context: Context) -> Node:
    """Order the rows that a LIMIT or OFFSET cuts as a subquery orders them.

    Example::

        query:
            SELECT id FROM (SELECT id, shop FROM sales ORDER BY price DESC) WHERE shop = 'a' LIMIT 2
        before:
            order by  limit 2 offset 0
              filter sales.shop = 'a'
                order by sales.price DESC NULLS LAST limit None offset 0
                  scan sales
        after:
            order by sales.price DESC NULLS LAST limit 2 offset 0
              filter sales.shop = 'a'
                scan sales
    """
    if not isinstance(node, Top):
        return with_children(node, lambda child: lift_orders(child, context))
    child = lift_orders(node.child, context)
    order = _order_of(child, context) if node.cuts and not node.order else ()
    if not order:
        return Top(child, node.order, node.limit, node.offset, node.ties)
    return Top(_without_order(child), order, node.limit, node.offset, node.ties)


def _order_of(node: Node, context: Context) -> Order:
    """Return the order of a node's rows; nothing if they have none."""
    match node:
        case Top():
            if not node.order:
                return ()  # else it would have been moved to this place
            kinds = context.types
            ties = node.ties if node.cuts else ()
            return (*node.order, *((Expr(mark(c), kinds[c], safe=True), "") for c in ties))
        case Filter():
            return _passed(_order_of(node.child, context), [node.predicate])
        case Extend():
            return _passed(_order_of(node.child, context), list(node.computed.values()))
        case TableScan() | Constant() | Aggregate():
            return ()
        case Join(kind="SEMI" | "ANTI"):
            kept = [node.left]
        case Join() | SetOperation():
            kept = [node.left, node.right]
        case Union():
            kept = list(node.children)
        case Windows() | Unnest():
            kept = [node.child]
    if any(_order_of(child, context) for child in kept):
        raise UnsupportedError("LIMIT around rows that a subquery orders")
    return ()


def _passed(order: Order, exprs: list[Expr]) -> Order:
    if order and any(expr.subqueries for expr in exprs):
        raise UnsupportedError("LIMIT around rows that a subquery orders")
    return order


def _without_order(node: Node) -> Node:
    """Return a node without the ORDER BY that was moved; where it cuts, it stays."""
    if isinstance(node, Top):
        return node if node.cuts else node.child
    return with_children(node, _without_order)
