"""`$name` in a query: replaced by a literal, token by token, so the rest of the text stays."""

import itertools
from collections.abc import Mapping

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from caudal.errors import ApplicationError
from caudal.model import ParameterValue


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
