"""Reading of aggregate calls: their arguments, their clauses and their types."""

from collections.abc import Callable

from sqlglot import exp

from caudal.sql.planner import known_functions, types
from caudal.sql.planner.algebra import Expr, FunctionCall
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.types import Type

_QUANTILES = ("median", "quantile_cont")
# These give lists if they have one argument more.
_SAME_TYPE = ("min", "max", "first", "last", "any_value", "arbitrary", "mode")
_SAME_TYPE_BY_ANOTHER = ("arg_min", "arg_max", "min_by", "max_by")
_DOUBLES = (
    "stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop", "corr", "covar_pop",
    "covar_samp", "skewness", "kurtosis", "entropy",
)  # fmt: skip


def is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and known_functions.is_aggregate(node.name)


def aggregate_call(node: exp.Expr, read_expr: Callable[[exp.Expr], Expr]) -> FunctionCall:
    """Return an aggregate call, with FILTER if it has one."""
    condition = None
    if isinstance(node, exp.Filter):
        condition = read_expr(node.expression.this)
        node = node.this
    if not is_aggregate(node):
        raise UnsupportedError("FILTER after something that is not an aggregate")
    arguments, distinct = list(node.expressions), False
    order: tuple[tuple[Expr, str], ...] = ()
    for place, argument in enumerate(arguments):
        if isinstance(argument, exp.Order):
            order = tuple((read_expr(item.this), direction(item)) for item in argument.expressions)
            arguments[place] = argument.this
    if arguments and isinstance(arguments[0], exp.Distinct):
        distinct = True
        if arguments[0].args.get("on") or len(arguments[0].expressions) != 1:
            raise UnsupportedError("this DISTINCT inside an aggregate is not split")
        arguments[0] = arguments[0].expressions[0]
        if isinstance(arguments[0], exp.Order):
            raise UnsupportedError("DISTINCT with ORDER BY inside an aggregate is not split")
    name = node.name.lower()
    if name == "count" and (not arguments or isinstance(arguments[0], exp.Star)):
        return FunctionCall("count", (), False, (), condition, "BIGINT")
    read = tuple(read_expr(argument) for argument in arguments)
    kind = type_of_call(name, [argument.type for argument in read])
    return FunctionCall(name, read, distinct, order, condition, kind)


def direction(item: exp.Ordered) -> str:
    """Return the direction of an ORDER BY expression, with the place of nulls."""
    if item.args.get("with_fill"):
        raise UnsupportedError("ORDER BY WITH FILL is not split")
    nulls = " NULLS FIRST" if item.args.get("nulls_first") else " NULLS LAST"
    return (" DESC" if item.args.get("desc") else " ASC") + nulls


def type_of_call(name: str, kinds: list[Type]) -> Type:
    first = kinds[0] if kinds else None
    if name in ("count", "count_if", "countif", "approx_count_distinct") or name in (
        "row_number", "rank", "dense_rank", "ntile",
    ):  # fmt: skip
        return "BIGINT" if not name.startswith("count_") and name != "countif" else "HUGEINT"
    if name == "sum":
        return types.summed(first)
    if name in _SAME_TYPE:
        return first if len(kinds) == 1 else None
    if name in _SAME_TYPE_BY_ANOTHER:
        return first if len(kinds) == 2 else None
    if name == "quantile_disc":
        return first if len(kinds) == 2 and types.is_numeric(kinds[1]) else None
    if name in ("avg", "mean"):
        return "DOUBLE" if types.is_numeric(first) else None
    if name in _DOUBLES:
        return "DOUBLE"
    if name in ("bool_and", "bool_or"):
        return "BOOLEAN"
    if name in ("string_agg", "listagg", "group_concat"):
        return "VARCHAR"
    if name in ("list", "array_agg") and first is not None:
        return first + "[]"
    if name in _QUANTILES and all(map(types.is_numeric, kinds[1:])):
        return "DOUBLE" if types.is_small(first) or first in ("HUGEINT", "DOUBLE") else None
    return None
