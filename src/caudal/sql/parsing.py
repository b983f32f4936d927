"""Parsing of SQL by sqlglot. Each text is parsed once, because binding reads it several times."""

from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

NOT_UNDERSTOOD = (SqlglotError, ValueError, RecursionError)
"""The errors that `read_sql` raises if sqlglot does not understand a text."""

_TEXTS_KEPT = 256


@lru_cache(maxsize=_TEXTS_KEPT)
def read_sql(sql: str) -> exp.Expr:
    """Return the tree of one statement. It is shared: copy it before you change it."""
    return sqlglot.parse_one(sql, dialect="duckdb")
