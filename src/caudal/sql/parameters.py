"""`$name` in a query: replaced by a literal, token by token, so the rest of the text stays."""

import itertools
import math
import re
from collections.abc import Mapping

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from caudal.errors import ApplicationError, UsageError
from caudal.model import ParameterValue

_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def parameter_names(sql: str, origin: str) -> list[str]:
    """The parameters of a query, in order of appearance, each once."""
    return list(dict.fromkeys(name for name, _, _ in _places(sql, origin)))


def bind_parameters(sql: str, values: Mapping[str, ParameterValue], origin: str) -> str:
    """The query with every `$name` replaced by its value as an SQL literal."""
    bound = sql
    for name, start, end in reversed(_places(sql, origin)):
        if name not in values:
            raise ApplicationError(
                f"{origin}: no value for ${name}: give --param {name}=VALUE, or a default under "
                "[parameters] in app.toml"
            )
        bound = bound[:start] + literal(values[name]) + bound[end:]
    return bound


def literal(value: ParameterValue) -> str:
    """A value as SQL text."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    return "'" + value.replace("'", "''") + "'"


def convert(name: str, text: str, default: ParameterValue) -> ParameterValue:
    """The text given on the command line, as the type of the parameter's default."""
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


def _places(sql: str, origin: str) -> list[tuple[str, int, int]]:
    """Where `$name` stands: (name, start, end), outside strings and comments."""
    try:
        tokens = DuckDB().tokenize(sql)
    except TokenError as error:
        raise ApplicationError(f"{origin}: {str(error).splitlines()[0]}") from error
    return [
        (after.text, token.start, after.end + 1)
        for token, after in itertools.pairwise(tokens)
        if token.token_type == TokenType.PARAMETER
        and sql[token.start] == "$"
        and after.start == token.end + 1
    ]
