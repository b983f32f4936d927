"""A SELECT that is given with a command or a call, and is not part of an application."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from caudal.errors import ApplicationError, UsageError
from caudal.model import ADHOC, Application, Query
from caudal.sql.parameters import parameter_names

_ORIGIN = "the query"


def with_adhoc_query(app: Application, sql: str) -> Application:
    """Return the application with this SELECT as its only query."""
    return replace(app, queries=(Query(ADHOC, sql, clean_statement(sql), _ORIGIN),))


def require_values(app: Application) -> None:
    """Raise UsageError if a parameter of the only query has no default."""
    (query,) = app.queries
    for name in parameter_names(query.sql, query.origin):
        if name not in app.parameters:
            raise UsageError(f"{query.origin}: no value for ${name}: write it into the SELECT")


def clean_statement(sql: str) -> str:
    """Return the text of one statement without its semicolon. Raise if it is not UTF-8."""
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{_ORIGIN} is not UTF-8 text: give it in UTF-8") from None
    return sql.strip().rstrip(";").rstrip()


@contextlib.contextmanager
def asker_mistakes() -> Iterator[None]:
    """Raise UsageError instead of ApplicationError for mistakes in the given SELECT."""
    try:
        yield
    except ApplicationError as error:
        if str(error).startswith(f"{_ORIGIN}: "):
            raise UsageError(str(error)) from error
        raise
