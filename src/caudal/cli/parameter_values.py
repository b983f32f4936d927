"""Parsing of the values of --param."""

import re

from caudal.errors import UsageError
from caudal.model import ParameterValue
from caudal.sql.literals import checked_value

_WHOLE = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def convert(name: str, text: str, default: ParameterValue) -> ParameterValue:
    """Convert the text from the command line to the type of the parameter's default."""
    return checked_value(name, _converted(name, text, type(default)), default)


def _converted(name: str, text: str, kind: type[ParameterValue]) -> ParameterValue:
    if kind is str:
        return text
    if kind is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind is int and _WHOLE.fullmatch(text):
        return int(text)
    if kind is float and _NUMBER.fullmatch(text):
        return float(text)
    wanted = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
    raise UsageError(f"--param {name}={text}: {name} must be {wanted}")
