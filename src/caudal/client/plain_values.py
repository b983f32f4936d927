"""The plain Python value that a value of numpy, of pandas or of an enum stands for.

Rules
1. Neither numpy nor pandas is imported: a value is known by what it has (`dtype`, `item`).
2. What is missing (NaT, NA, what numpy masks) is None. NaN is a number.
3. Times are those of Python, which end at microseconds: what is finer is left out.
4. What is not understood is refused, never guessed: a duration of numpy would become a number, and
   a member of an enum that is no number or text is only a name.
"""

import datetime
import decimal
from typing import Any

_PLAIN = frozenset(
    [
        *(type(None), bool, int, float, str, decimal.Decimal),
        *(datetime.datetime, datetime.date, datetime.time, list, tuple, dict),
    ]
)
_MISSING = frozenset(["NAType", "NaTType"])


class NotPlainError(Exception):
    """A value that is not understood. The message is the name of its type."""


def plain(value: Any) -> Any:
    """Return a value of one of the plain types; what a container holds is left as it is.

    >>> from enum import IntEnum
    >>> plain(IntEnum("Colour", "RED").RED)
    1
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind.__name__ in _MISSING and kind.__module__.partition(".")[0] == "pandas":
        return None
    return _of_subclass(value)


def _of_subclass(value: Any) -> Any:
    match value:
        case str():
            return str.__str__(value)
        case int():
            return int.__int__(value)
        case float():
            return float.__float__(value)
        case decimal.Decimal():
            return decimal.Decimal(value)
        case datetime.datetime():
            return datetime.datetime.combine(_date(value), _time(value))
        case datetime.date():
            return _date(value)
        case datetime.time():
            return _time(value)
        case list():
            return list(value)
        case tuple():
            return tuple(value)
        case dict():
            return dict(value)
    return _of_array(value) if hasattr(value, "item") else _refuse(value)


def _date(value: Any) -> datetime.date:
    return datetime.date(value.year, value.month, value.day)


def _time(value: Any) -> datetime.time:
    clock = value.hour, value.minute, value.second, value.microsecond
    return datetime.time(*clock, tzinfo=value.tzinfo, fold=value.fold)


def _of_array(value: Any) -> Any:
    """Return the value of a scalar, or the elements of an array of any library."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None and getattr(value, "ndim", None) != 0:
        return list(value)
    kind = getattr(dtype, "kind", "")
    try:
        # `item` of what is masked would be the number behind the mask.
        found = value.tolist() if hasattr(value, "mask") else value.item()
        if kind == "M" and isinstance(found, int):  # finer than microseconds
            found = value.astype("datetime64[us]").item()
    except Exception:
        return _refuse(value)
    is_span = kind == "m" or (kind == "M" and isinstance(found, int))  # or beyond year 9999
    if type(found) is type(value) or (is_span and found is not None):
        return _refuse(value)
    return plain(found)


def _refuse(value: Any) -> Any:
    raise NotPlainError(type(value).__name__)
