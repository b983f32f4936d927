"""Parameters: `$name` in a query is replaced by a typed literal. The rest of the text stays.

The literal is put in before anything is planned. So a query with parameters is planned exactly like
the same query with constants.
"""

import re
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
        bound = bound[:start] + _apart(literal(values[name]), sql, start, end) + bound[end:]
    return bound


def _apart(text: str, sql: str, start: int, end: int) -> str:
    """Return the text of a value so that nothing beside it becomes a part of it: DuckDB refuses
    `'a'$b` and `$n.5`."""
    before, after = sql[max(start - 1, 0) : start], sql[end : end + 1]
    return f"{' ' * bool(_JOINS.match(before))}{text}{' ' * bool(_JOINS.match(after))}"


def _places(sql: str, origin: str) -> list[tuple[str, int, int]]:
    """Return (name, start, end) of every `$name` outside strings and comments."""
    if "$" not in sql:
        return []
    places, at = list[tuple[str, int, int]](), 0
    while (found := _PART.search(sql, at)) is not None:
        at = found.end()
        if found["comment"]:
            at = _comment_end(sql, found.start(), origin)
        elif found["name"]:
            places.append((found["name"], found.start(), at))
        elif found["quoted"]:
            places.append((found["quoted"].replace('""', '"'), found.start(), at))
    return places


# DuckDB's lexer: strings, names and comments may hold a `$`, and so may a word such as `a$b`.
_PART = re.compile(
    r"""
    --[^\n\r]*
    | (?P<comment>/\*)
    | [eE]'(?:[^'\\]|\\.|'')*'
    | '[^']*'
    | "[^"]*"
    | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$
    | \$(?P<name>\w+)
    | \$"(?P<quoted>(?:[^"]|"")+)"
    | [^\W\d][\w$]*
    """,
    re.DOTALL | re.VERBOSE,
)
_JOINS = re.compile(r"[\w'\".]")
_COMMENT = re.compile(r"/\*|\*/")


def _comment_end(sql: str, start: int, origin: str) -> int:
    """Return where a comment ends; it may have comments inside."""
    depth = 0
    for mark in _COMMENT.finditer(sql, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise ApplicationError(f"{origin}: a comment has no end")
