"""Reading of ORDER BY, LIMIT and OFFSET."""

from sqlglot import exp

from caudal.sql.planner import aggregate_calls
from caudal.sql.planner.algebra import Expr, Output, mark
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.expressions import ExpressionReader
from caudal.sql.quoting import folded


def order_item(
    item: exp.Ordered, reader: ExpressionReader, outputs: tuple[Output, ...]
) -> list[tuple[Expr, str]]:
    """Return the expressions of one item: a position, the name of an output, ALL, or any other."""
    types = reader.context.types
    node, after = item.this, aggregate_calls.direction(item)
    if isinstance(node, exp.Var) and node.name.upper() == "ALL":
        return [(Expr(mark(o.column), types[o.column]), after) for o in outputs]
    if isinstance(node, exp.Literal):
        if not node.is_int or not 1 <= int(node.name) <= len(outputs):
            raise UnsupportedError("ORDER BY a constant")
        column = outputs[int(node.name) - 1].column
        return [(Expr(mark(column), types[column]), after)]
    if isinstance(node, exp.Column) and not node.table:
        named = {o.column for o in outputs if folded(o.name or "") == folded(node.name)}
        if len(named) == 1:  # in ORDER BY alone, an alias comes before a column
            column = named.pop()
            return [(Expr(mark(column), types[column]), after)]
    expr = reader.make_expr(reader.read_extracting(node))
    return [(expr, after)] if expr.columns or expr.subqueries else []


def limits(query: exp.Expr) -> tuple[int | None, int]:
    """Return LIMIT and OFFSET, which must be plain numbers."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    if limit is not None and (not isinstance(limit, exp.Limit) or limit.args.get("limit_options")):
        raise UnsupportedError("LIMIT by percentage")
    numbers = [clause.expression if clause is not None else None for clause in (limit, offset)]
    if any(n is not None and not (isinstance(n, exp.Literal) and n.is_int) for n in numbers):
        raise UnsupportedError("LIMIT or OFFSET that is not a plain number")
    first, second = (int(n.name) if n is not None else None for n in numbers)
    return first, second or 0
