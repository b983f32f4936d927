"""Derived tables: tables without files, whose SQL reads other tables of the application.

Rules
1. A derived table is a name for a SELECT. A statement that reads it gets it as a WITH clause in
   front, after those that it reads itself. So engines and clusters see an ordinary SELECT over
   tables with files, and split it as far as they can.
2. Derived tables are sorted by what they read. A cycle is refused.
3. Which tables a text reads is what the parser says. If it does not understand the text, every name
   that occurs in it counts: an unused WITH clause changes no answer.
4. No statement may have a WITH clause of its own with the name of a derived table: which of the two
   a name means would depend on its place.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from caudal.errors import ApplicationError
from caudal.model import DerivedTable
from caudal.sql.quoting import quote

_RAW = "raw"


def in_order(tables: Sequence[DerivedTable]) -> tuple[DerivedTable, ...]:
    """Return the tables, each after those that it reads; raise ApplicationError for a cycle."""
    by_name = {table.name.lower(): table for table in tables}
    reads = {name: _read_names(table.sql, by_name, table.origin) for name, table in by_name.items()}
    for table in tables:
        _refuse_own_clauses(table.sql, by_name, table.origin)
        if _RAW in _read_names(table.sql, (_RAW,), table.origin):
            raise ApplicationError(
                f"{table.origin}: reads `raw`, so table {table.name} needs files and columns in "
                "app.toml; a table without files reads other tables only"
            )
    done: list[str] = []
    for name in by_name:
        _visit(name, reads, done, [])
    return tuple(by_name[name] for name in done)


def _visit(name: str, reads: dict[str, frozenset[str]], done: list[str], above: list[str]) -> None:
    if name in above:
        circle = " reads ".join([*above[above.index(name) :], name])
        raise ApplicationError(f"tables depend on each other in a circle: {circle}; break it")
    if name in done:
        return
    for read in sorted(reads[name]):
        _visit(read, reads, done, [*above, name])
    done.append(name)


def expand(sql: str, derived: Sequence[DerivedTable], origin: str) -> str:
    """Return a SELECT with the derived tables that it reads, directly or not, as WITH clauses."""
    needed = _needed(sql, derived, origin)
    if not needed:
        return sql
    clauses = ", ".join(f"{quote(table.name)} AS (\n{table.sql}\n)" for table in needed)
    first, *others = _tokens(sql, origin)
    if first.text.upper() != "WITH":
        return f"{sql[: first.start]}WITH {clauses}\n{sql[first.start :]}"
    recursive = bool(others) and others[0].text.upper() == "RECURSIVE"
    place = (others[0] if recursive else first).end + 1
    return f"{sql[:place]} {clauses},{sql[place:]}"


def _needed(sql: str, derived: Sequence[DerivedTable], origin: str) -> list[DerivedTable]:
    if not derived:
        return []
    names = {table.name.lower() for table in derived}
    _refuse_own_clauses(sql, names, origin)
    wanted = set(_read_names(sql, names, origin))
    for table in reversed(derived):
        if table.name.lower() in wanted:
            wanted |= _read_names(table.sql, names, table.origin)
    return [table for table in derived if table.name.lower() in wanted]


def _refuse_own_clauses(sql: str, names: Iterable[str], origin: str) -> None:
    if taken := sorted(set(names).intersection(_with_names(sql))):
        raise ApplicationError(
            f"{origin}: WITH {taken[0]} has the name of a table of the application: rename one"
        )


def _read_names(sql: str, names: Iterable[str], origin: str) -> frozenset[str]:
    """Return which of these names, in lower case, the text reads as tables."""
    known = frozenset(names)
    if not any(name in sql.lower() for name in known):
        return frozenset()
    from sqlglot import exp

    from caudal.sql.parsing import NOT_UNDERSTOOD, read_sql

    try:
        read = {table.name.lower() for table in read_sql(sql).find_all(exp.Table)}
    except NOT_UNDERSTOOD:
        read = {token.text.lower() for token in _tokens(sql, origin)}
    return known & read


def _with_names(sql: str) -> Iterator[str]:
    from sqlglot import exp

    from caudal.sql.parsing import NOT_UNDERSTOOD, read_sql

    try:
        for clause in read_sql(sql).find_all(exp.CTE):
            yield clause.alias.lower()
    except NOT_UNDERSTOOD:
        return


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int  # of its last character


def _tokens(sql: str, origin: str) -> list[_Token]:
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import TokenError

    try:
        return [_Token(one.text, one.start, one.end) for one in DuckDB().tokenize(sql)]
    except TokenError as error:
        raise ApplicationError(f"{origin}: {str(error).splitlines()[0]}") from error
