"""Analyses SQL on empty tables with DuckDB: its result columns, their types, the columns it reads.

A SELECT reads those columns that remain in DuckDB's plan after unused columns are removed.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence

import duckdb

from caudal.duck.database import one_line, point_out
from caudal.duck.empty_database import disable_rules
from caudal.duck.reads import reads_of
from caudal.errors import ApplicationError
from caudal.sql.planner import Reads
from caudal.sql.quoting import quote
from caudal.sql.table_needs import Schema

_WORD = re.compile(r"\w+")


@contextlib.contextmanager
def empty_schema(connection: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """Provide a cursor on an empty schema, whose only optimiser rule removes unused columns.

    Other rules would use the fact that the tables are empty, or hide filters.
    """
    cursor = connection.cursor()
    rules = [row[0] for row in cursor.execute("FROM duckdb_optimizers()").fetchall()]
    try:
        disable_rules(cursor, *(rule for rule in rules if rule != "unused_columns"))
        cursor.execute("ATTACH ':memory:' AS binding")  # its `main` hides the real one
        cursor.execute("SET search_path = 'binding.main,memory.main'")
        yield cursor
    finally:
        cursor.execute("USE memory; DETACH binding")
        disable_rules(cursor)
        cursor.close()


def create_empty(cursor: duckdb.DuckDBPyConnection, name: str, schema: Schema) -> None:
    """Create a table of this schema, without rows."""
    columns = ", ".join(f"{quote(column)} {kind}" for column, kind in schema.items())
    cursor.execute(f"CREATE OR REPLACE TABLE {quote(name)} ({columns})")


def describe(cursor: duckdb.DuckDBPyConnection, sql: str, origin: str) -> list[tuple[str, str]]:
    """Return the result columns of one SELECT, as (name, type)."""
    try:
        statements = cursor.extract_statements(sql)
        _require_one_select(statements, origin)
        rows = cursor.execute(f"DESCRIBE {sql}").fetchall()
    except duckdb.Error as error:
        raise point_out(ApplicationError(f"{origin}: {one_line(error)}"), error, sql) from None
    names = [row[0] for row in rows]
    if not _are_spelled_once(names, sql):
        from caudal.sql.footprint import output_names

        declared = output_names(sql)
        if [name.lower() for name in names] == [name.lower() for name in declared]:
            names = declared  # DuckDB keeps the case of `"Title"` in `"Title" AS title`
    return [(name, row[1]) for name, row in zip(names, rows, strict=True)]


def _are_spelled_once(names: Sequence[str], sql: str) -> bool:
    """Return whether the text holds all words of the names, always in this case.

    Then no alias changes a name. The text is read once, however many names there are.
    """
    spellings: dict[str, set[str]] = {}
    for word in set(_WORD.findall(sql)):
        spellings.setdefault(word.lower(), set()).add(word)
    words = {word for name in names for word in _WORD.findall(name)}
    return all(spellings.get(word.lower()) == {word} for word in words)


def _require_one_select(statements: list[duckdb.Statement], origin: str) -> None:
    if len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT:
        return
    if statements and statements[0].type == duckdb.StatementType.MULTI:
        # DuckDB turns a PIVOT into several statements: the first ones look up the values.
        raise ApplicationError(
            f"{origin}: a PIVOT must list the values that become columns, since Caudal binds it "
            "before any row is read: PIVOT t ON kind IN ('a', 'b') USING count(*)"
        )
    raise ApplicationError(f"{origin}: must hold one SELECT and nothing else")


def types_given(cursor: duckdb.DuckDBPyConnection, sql: str) -> list[str] | None:
    """Return the types of a SELECT's columns; None if it does not bind."""
    try:
        return [row[1] for row in cursor.execute(f"DESCRIBE {sql}").fetchall()]
    except duckdb.Error:
        return None


def read_by(cursor: duckdb.DuckDBPyConnection, sql: str, origin: str) -> Reads:
    """Return which tables a SELECT scans, how often, and which columns of them it reads."""
    try:
        return reads_of(cursor, sql, lambda name: (name, _columns(cursor, name)))
    except RecursionError:  # the plan is nested too deeply
        return _reads_all(cursor, sql)
    except duckdb.Error as error:  # a constant that cannot be converted fails only here
        raise ApplicationError(f"{origin}: {one_line(error)}") from None


def _reads_all(cursor: duckdb.DuckDBPyConnection, sql: str) -> Reads:
    """Return every column of every table that the text names, so that nothing is missing."""
    tables = [row[0] for row in cursor.execute("SHOW TABLES").fetchall()]
    named = {name.lower() for name in cursor.get_table_names(sql)}
    columns = {t: frozenset(_columns(cursor, t)) for t in tables if t.lower() in named}
    return Reads({}, columns, frozenset(), "")


def _columns(cursor: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    return [row[0] for row in cursor.execute(f"DESCRIBE {quote(table)}").fetchall()]
