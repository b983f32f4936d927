"""Parameters: `$name` in a query is replaced by a typed literal. The rest of the text stays.

The literal is put in before anything is planned. So a query with parameters is planned exactly like
the same query with constants.
"""

import itertools
from collections.abc import Mapping

from caudal.errors import ApplicationError
from caudal.sql.literals import SqlValue, literal


def parameter_names(sql: str, origin: str) -> list[str]:
    """Return the parameters of a query, each once, in order of appearance."""
    return list(dict.fromkeys(name for name, _, _ in _places(sql, origin)))


def bind_parameters(sql: str, values: Mapping[str, SqlValue], origin: str) -> str:
    """Return the query with every `$name` replaced by its value as an SQL literal."""
    bound = sql
    for name, start, end in reversed(_places(sql, origin)):
        if name not in values:
            raise ApplicationError(
                f"{origin}: no value for ${name}: give --param {name}=VALUE, or a default under "
                "[parameters] in app.toml"
            )
        bound = bound[:start] + literal(values[name]) + bound[end:]
    return bound


def _places(sql: str, origin: str) -> list[tuple[str, int, int]]:
    """Return (name, start, end) of every `$name` outside strings and comments."""
    if "$" not in sql:
        return []
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import TokenError
    from sqlglot.tokenizer_core import TokenType

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
