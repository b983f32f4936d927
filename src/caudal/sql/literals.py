"""Values of parameters: check their types, and write them as SQL literals.

Rules
1. The default of a parameter decides its type; a value of another type is refused. A whole number
   is also a number. Without a default, the value decides the type.
2. A value becomes one operand, whatever stands around it: texts are quoted, and a number with a
   sign stands in parentheses (`5 -$n` must not become a comment).
"""

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from caudal.errors import UsageError
from caudal.model import ParameterValue

# What Python may give for a parameter of an ad hoc SELECT: such a value never travels.
SqlValue = ParameterValue | date | datetime | Decimal | Sequence[Any] | None

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_LARGEST = (1 << 63) - 1
_DIGITS = 38  # of DuckDB's largest DECIMAL


def checked_value(
    name: str, value: object, default: ParameterValue | None = None
) -> ParameterValue:
    """Return the value in the type of its default; raise UsageError if it has another one."""
    plain = _plain(value)
    kind = type(plain) if default is None else type(default)
    if kind is float and type(plain) is int:
        plain = float(plain)
    if kind not in _WORDS or type(plain) is not kind:
        wanted = _WORDS.get(kind, "a text, a number, or true or false")
        raise UsageError(f"parameter {name}={value!r}: {name} must be {wanted}")
    _require_usable(name, plain)
    return plain  # type: ignore[return-value]


def literal(value: SqlValue) -> str:
    """Return a value as an SQL literal."""
    plain = _plain(value)
    if plain is None:
        return "NULL"
    if isinstance(plain, bool):
        return "TRUE" if plain else "FALSE"
    if isinstance(plain, int):
        return str(plain) if plain >= 0 else f"({plain})"
    if isinstance(plain, float):
        return _double(plain)
    if isinstance(plain, Decimal):
        return _decimal(plain)
    if isinstance(plain, datetime):
        kind = "TIMESTAMP" if plain.tzinfo is None else "TIMESTAMPTZ"
        return f"CAST('{plain.isoformat(' ')}' AS {kind})"
    if isinstance(plain, date):
        return f"CAST('{plain.isoformat()}' AS DATE)"
    if isinstance(plain, list | tuple):
        return f"[{', '.join(map(literal, plain))}]"
    if not isinstance(plain, str):
        raise UsageError(f"a parameter cannot be a {type(plain).__name__}: {plain!r}")
    _require_text("a parameter", plain)
    return "'" + plain.replace("'", "''") + "'"


def _plain(value: object) -> object:
    """Return a scalar of numpy or pandas as the Python value that it stands for."""
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return value.item()
    return value


def _require_usable(name: str, value: object) -> None:
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise UsageError(f"parameter {name}: {value:.3e} is beyond 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"parameter {name}={value}: {name} must be a number, and finite")
    if isinstance(value, str):
        _require_text(f"parameter {name}", value)


def _require_text(what: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{what}: its value is not UTF-8 text") from None
    if "\0" in value:
        raise UsageError(f"{what}: its text holds a zero byte, which SQL text cannot hold")


def _double(value: float) -> str:
    """Return a literal of type DOUBLE: with an exponent, else it would be a DECIMAL."""
    if not math.isfinite(value):
        return f"CAST('{value!r}' AS DOUBLE)"
    text = repr(value) if "e" in repr(value) else f"{value!r}e0"
    return f"({text})" if text.startswith("-") else text


def _decimal(value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise UsageError(f"a parameter cannot be {value}: give a finite number")
    scale = max(-exponent, 0)
    width = max(len(digits) + max(exponent, 0), scale, 1)
    if width > _DIGITS:
        raise UsageError(f"a parameter has more than {_DIGITS} digits: {value}")
    return f"CAST('{value:f}' AS DECIMAL({width}, {scale}))"
