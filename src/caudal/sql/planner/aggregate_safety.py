"""Which aggregates cannot raise an error, whatever further rows they are given."""

from caudal.sql.planner import types
from caudal.sql.planner.algebra import FunctionCall

_NEVER_RAISE = ("count", "min", "max", "bool_and", "bool_or", "first", "any_value", "list")


def cannot_raise(call: FunctionCall) -> bool:
    """Return whether an aggregate gives a value for any rows. A sum must have room for them."""
    if not all(expr.safe for expr in call.expressions()):
        return False
    return call.name in _NEVER_RAISE or (
        call.name == "sum" and types.sums_have_room(call.arguments[0].type)
    )
