"""Parsing of the values of --param."""

import math
import re

from caudal.errors import UsageError
from caudal.model import ParameterValue

_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def convert(name: str, text: str, default: ParameterValue) -> ParameterValue:
    """Convert the text from the command line to the type of the parameter's default."""
    kind = type(default)
    if kind is str:
        return _utf8(name, text)
    if kind is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind is int and _WHOLE.fullmatch(text):
        return int(text)
    if kind is float and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    wanted = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
    raise UsageError(f"--param {name}={text}: {name} must be {wanted}")


def _utf8(name: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"--param {name}: its value is not UTF-8 text") from None
    return text
