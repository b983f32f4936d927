"""A SELECT that is not part of an application: its only query, and whose mistake it is."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from caudal.errors import ApplicationError, UsageError
from caudal.model import ADHOC, Application, Query
from caudal.sql.parameters import parameter_names

_ORIGIN = "the query"


def with_adhoc_query(app: Application, sql: str) -> Application:
    """The application with this SELECT as its only query."""
    return replace(app, queries=(Query(ADHOC, sql, clean_statement(sql), _ORIGIN),))


def require_values(app: Application) -> None:
    """Every parameter of the only query has a default: nobody is asked for values here."""
    (query,) = app.queries
    for name in parameter_names(query.sql, query.origin):
        if name not in app.parameters:
            raise UsageError(f"{query.origin}: no value for ${name}: write it into the SELECT")


def clean_statement(sql: str) -> str:
    """One statement as text that DuckDB can take."""
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{_ORIGIN} is not UTF-8 text: give it in UTF-8") from None
    return sql.strip().rstrip(";").rstrip()


@contextlib.contextmanager
def asker_mistakes() -> Iterator[None]:
    """SQL that was given with the command is the asker's to correct, not an application's."""
    try:
        yield
    except ApplicationError as error:
        if str(error).startswith(f"{_ORIGIN}: "):
            raise UsageError(str(error)) from error
        raise
