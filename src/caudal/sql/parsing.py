"""SQL text to sqlglot's tree, each text once: binding looks at the same SELECTs again and again."""

from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

NOT_UNDERSTOOD = (SqlglotError, ValueError, RecursionError)
"""What reading SQL raises when sqlglot does not understand it."""

_TEXTS_KEPT = 256


@lru_cache(maxsize=_TEXTS_KEPT)
def read_sql(sql: str) -> exp.Expr:
    """The tree of one statement. It is shared: copy it before changing anything."""
    return sqlglot.parse_one(sql, dialect="duckdb")


def quote(name: str) -> str:
    """Return an identifier as SQL text."""
    return '"' + name.replace('"', '""') + '"'
