"""A SELECT that is given with a command or a call, and is not part of an application."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from caudal.errors import ApplicationError, UsageError
from caudal.model import ADHOC, Application, ParameterValue, Query
from caudal.sql.derived import expand
from caudal.sql.literals import SqlValue, checked_value
from caudal.sql.parameters import bind_parameters, parameter_names

_ORIGIN = "the query"
_NONE: Mapping[str, ParameterValue] = {}


def with_adhoc_query(app: Application, sql: str, written: str = "") -> Application:
    """Return the application with this SELECT as its only query.

    `written` is the SELECT of the user, if names of files in it were replaced.
    """
    statement = clean_statement(sql)
    with asker_mistakes():
        expanded = expand(statement, app.derived, _ORIGIN) if app.derived else statement
    return replace(app, queries=(Query(ADHOC, written or sql, expanded, _ORIGIN),))


def bind_values(
    sql: str, given: Mapping[str, SqlValue], defaults: Mapping[str, ParameterValue] = _NONE
) -> str:
    """Return a SELECT with its `$parameters` replaced by the given values, else by the defaults.

    Raise UsageError for a parameter without a value, a value without a parameter, and a value of
    another type than its default. All that follows sees an ordinary SELECT, so this is the one way
    in which the parameters of an ad hoc SELECT get their values.
    """
    with asker_mistakes():
        names = parameter_names(clean_statement(sql), _ORIGIN)
        for name in given:
            if name not in names:
                known = f"its parameters are: {', '.join(names)}" if names else "it has none"
                raise UsageError(f"{_ORIGIN} has no parameter {name!r}; {known}")
        values: dict[str, SqlValue] = {**defaults}
        for name, value in given.items():
            known_type = name in defaults
            values[name] = checked_value(name, value, defaults[name]) if known_type else value
        for name in names:
            if name not in values:
                raise UsageError(
                    f"{_ORIGIN}: no value for ${name}: give --param {name}=VALUE, "
                    f'from Python parameters={{"{name}": VALUE}}'
                )
        return bind_parameters(sql, values, _ORIGIN)


def clean_statement(sql: str) -> str:
    """Return the text of one statement without its semicolon. Raise if it is not UTF-8."""
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{_ORIGIN} is not UTF-8 text: give it in UTF-8") from None
    return sql.strip().rstrip(";").rstrip()


@contextlib.contextmanager
def asker_mistakes(asked: Application | None = None) -> Iterator[None]:
    """Raise UsageError instead of ApplicationError for mistakes in the given SELECT.

    If `asked` is the application of that SELECT, its lines are shown as the user wrote them.
    """
    try:
        yield
    except ApplicationError as error:
        if str(error).startswith(f"{_ORIGIN}: "):
            mistake = UsageError(str(error))
            for note in getattr(error, "__notes__", ()):
                mistake.add_note(_as_written(note, asked.queries if asked else ()))
            raise mistake from error
        raise


def _as_written(note: str, queries: Sequence[Query]) -> str:
    """Return a note that points into a line, with the line as written where it is as long."""
    for query in queries:
        lines = zip(query.title.splitlines(), query.sql.splitlines(), strict=False)
        for written, line in lines:
            if len(written) == len(line) and f": {line}\n" in note:
                return note.replace(f": {line}\n", f": {written}\n")
    return note
