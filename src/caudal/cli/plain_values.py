"""Fast conversion of simple option values, without pydantic.

Typer converts every value with pydantic, which takes as long to load as DuckDB. Most values are
simple: a text, a path, digits within the bounds, a name from a list. This module converts those,
with the same result as typer. Typer converts all other values, including invalid ones, so error
messages stay typer's.
"""

import re
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

_UNKNOWN = object()  # marks a value that typer must convert
_NUMBERS = {int: re.compile(r"[0-9]{1,15}"), float: re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")}
_CONDITIONS = ("exists", "resolve_path", "allow_dash", "parser", "click_type", "path_type")


def take_plainly(command: Any) -> None:
    """Make the parameters of a typer command or group convert simple values here."""
    for one in (command, *getattr(command, "commands", {}).values()):
        for parameter in one.params:
            _take_plainly(parameter)
        one.get_help_option = _plain_help(one.get_help_option)


def _plain_help(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap the factory of --help, which typer calls anew for each command call."""
    return lambda context: _take_plainly(make(context))


def _take_plainly(parameter: Any) -> Any:
    if getattr(parameter, "is_flag", False):
        parameter.metavar = ""  # else --help shows <bool>, as if a flag took a value
    if hasattr(parameter, "get_runtime_param"):  # absent in typer versions that convert differently
        parameter.get_runtime_param = _Values(parameter)
    return parameter


class _Values:
    """A replacement for `get_runtime_param` of a parameter, and the converter it returns."""

    def __init__(self, parameter: Any) -> None:
        self._parameter = parameter
        self._typers = parameter.get_runtime_param

    def __call__(self) -> "_Values":
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = self._parameter.type_descriptor
        plain = _UNKNOWN
        if value is None:
            plain = () if param.multiple or param.nargs == -1 else None
        elif value is self._parameter.default and not isinstance(value, str | list | tuple):
            plain = value
        elif not any(getattr(kind.parameter_info, name, None) for name in _CONDITIONS):
            plain = plain_value(value, kind.annotation, kind.parameter_info)
        return self._typers().coerce(value, param=param, ctx=ctx) if plain is _UNKNOWN else plain


def plain_value(value: Any, kind: Any, bounds: Any) -> Any:
    """Convert a text to a value of this type; return _UNKNOWN if typer must do it."""
    if get_origin(kind) is list and isinstance(value, list | tuple):
        values = [plain_value(one, get_args(kind)[0], bounds) for one in value]
        return _UNKNOWN if _UNKNOWN in values else values
    if not isinstance(value, str) or not _is_unicode(value):
        return _UNKNOWN
    if kind is str or kind is Path:
        return kind(value)
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else _UNKNOWN
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next((one for one in kind if one.value == value), _UNKNOWN)
    return _number(value, kind, bounds) if kind in _NUMBERS else _UNKNOWN


def _is_unicode(value: str) -> bool:
    """Return False if the command line held bytes that are not UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(value: str, kind: Any, bounds: Any) -> Any:
    if not _NUMBERS[kind].fullmatch(value):
        return _UNKNOWN
    number = kind(value)
    above = bounds.min is None or bounds.min <= number
    return number if above and (bounds.max is None or number <= bounds.max) else _UNKNOWN
