"""Ties under LIMIT and OFFSET: when columns must break them, and whether they can.

A reader of a common table asks for some of its columns, another reader for others. Both must see
the same rows, so all columns of the cut SELECT break ties, read or not. They need not if rows come
in the order of the files, or in the order that windows leave.
"""

from collections.abc import Mapping

from caudal.sql.planner.algebra import (
    Constant,
    Extend,
    Filter,
    Join,
    Node,
    TableScan,
    Top,
    Union,
    Unnest,
    Windows,
    columns_of,
)
from caudal.sql.planner.types import Type


def come_as_files_do(node: Node) -> bool:
    """Return whether the rows of a node certainly come in the order of the files.

    Operators that read one row at a time stay with their batch. A subquery in them ends the scan.
    """
    match node:
        case TableScan() | Constant():
            return True
        case Filter():
            return not node.predicate.subqueries and come_as_files_do(node.child)
        case Extend():
            plain = not any(expr.subqueries for expr in node.computed.values())
            return plain and come_as_files_do(node.child)
        case Unnest():
            return not node.expr.subqueries and come_as_files_do(node.child)
        case Top():
            return not node.order and come_as_files_do(node.child)
        case _:
            return False


def stay_in_order(node: Node) -> bool:
    """Return whether the rows of a node have one order, unless they were partitioned.

    It is that of the files, or the one that windows leave. How rows are batched decides in which
    order a join gives them; what is not listed here orders them in its own way.
    """
    match node:
        case TableScan() | Constant():
            return True
        case Filter() | Extend() | Unnest() | Windows():
            return stay_in_order(node.child)
        case Top():
            return not node.order and stay_in_order(node.child)
        case Union():
            return all(map(stay_in_order, node.children))
        case _:
            return False


def may_raise(node: Node, columns: frozenset[int], kinds: Mapping[int, Type]) -> bool:
    """Return whether an error can come from computing these columns where nobody else needs them.

    What is not listed computes all its columns for any reader.
    """
    match node:
        case Extend():
            mine = [node.computed[column] for column in columns & node.computed.keys()]
            below = (columns - node.computed.keys()).union(*(expr.columns for expr in mine))
            return not all(expr.safe for expr in mine) or may_raise(node.child, below, kinds)
        case Filter() | Top() | Unnest() | Windows():
            return may_raise(node.child, columns, kinds)
        case Join():
            return any(
                may_raise(side, columns & columns_of(side), kinds)
                for side in (node.left, node.right)
            )
        case Union():
            return any(
                _raises_in_branch(
                    child, dict(zip(node.columns, inputs, strict=True)), columns, kinds
                )
                for child, inputs in zip(node.children, node.inputs, strict=True)
            )
        case _:
            return False


def _raises_in_branch(
    child: Node, inputs: Mapping[int, int], columns: frozenset[int], kinds: Mapping[int, Type]
) -> bool:
    """Return the same for a branch of a union, whose columns are cast to the type of the union."""
    read = {inputs[column]: column for column in columns & inputs.keys()}
    cast = any(kinds[one] != kinds[column] for one, column in read.items())
    return cast or may_raise(child, frozenset(read), kinds)
