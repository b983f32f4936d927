"""What DuckDB says of SQL on empty tables: the columns it gives, their types, the columns it reads.

Which columns a SELECT reads is what remains in DuckDB's plan once unused columns are removed.
"""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import duckdb

from caudal.engine.database import one_line
from caudal.errors import ApplicationError
from caudal.sql.lifts import Schema, output_names, quote


@contextlib.contextmanager
def empty_schema(connection: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor on an empty schema, where only the removal of unused columns optimises: other
    rules would conclude from the tables being empty, or move filters out of sight."""
    cursor = connection.cursor()
    rules = [row[0] for row in cursor.execute("FROM duckdb_optimizers()").fetchall()]
    try:
        cursor.execute(
            f"SET disabled_optimizers = '{','.join(r for r in rules if r != 'unused_columns')}'"
        )
        cursor.execute("ATTACH ':memory:' AS binding")  # where `main` is this one, not the real one
        cursor.execute("SET search_path = 'binding.main,memory.main'")
        yield cursor
    finally:
        cursor.execute("USE memory; DETACH binding; SET disabled_optimizers = ''")
        cursor.close()


def create_empty(cursor: duckdb.DuckDBPyConnection, name: str, schema: Schema) -> None:
    """A table of this schema, without rows."""
    columns = ", ".join(f"{quote(column)} {kind}" for column, kind in schema.items())
    cursor.execute(f"CREATE OR REPLACE TABLE {quote(name)} ({columns})")


def describe(cursor: duckdb.DuckDBPyConnection, sql: str, origin: str) -> list[tuple[str, str]]:
    """The columns that one SELECT gives, as (name, type)."""
    try:
        statements = cursor.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise ApplicationError(f"{origin}: must hold one SELECT and nothing else")
        rows = cursor.execute(f"DESCRIBE {sql}").fetchall()
    except duckdb.Error as error:
        raise ApplicationError(f"{origin}: {one_line(error)}") from None
    names = [row[0] for row in rows]
    declared = output_names(sql)
    if [name.lower() for name in names] == [name.lower() for name in declared]:
        names = declared  # DuckDB keeps the case of `"Title"` in `"Title" AS title`
    return [(name, row[1]) for name, row in zip(names, rows, strict=True)]


def types_given(cursor: duckdb.DuckDBPyConnection, sql: str) -> list[str] | None:
    """The types of a SELECT's columns; None when it does not bind."""
    try:
        return [row[1] for row in cursor.execute(f"DESCRIBE {sql}").fetchall()]
    except duckdb.Error:
        return None


def columns_read(cursor: duckdb.DuckDBPyConnection, sql: str) -> dict[str, set[str]]:
    """Which columns of which tables a SELECT reads."""
    row = cursor.execute(f"EXPLAIN (FORMAT json) {sql}").fetchone()
    reads: dict[str, set[str]] = {}

    def visit(node: dict[str, Any]) -> None:
        for child in node["children"]:
            visit(child)
        table = node["extra_info"].get("Table")
        if table is not None:
            columns = node["extra_info"].get("Projections", [])
            names = [columns] if isinstance(columns, str) else columns
            name = _unquoted(table.split(".")[-1])
            reads.setdefault(name, set()).update(_whole_columns(cursor, name, names))

    for root in json.loads(row[1]) if row else ():
        visit(root)
    return reads


def _whole_columns(
    cursor: duckdb.DuckDBPyConnection, table: str, names: list[str]
) -> Iterator[str]:
    """The columns that a scan's projections mean: `spot.x` is a part of the column `spot`."""
    known: list[str] | None = None
    for name in filter(None, names):
        if "." in name and known is None:
            quoted = table.replace('"', '""')
            known = [row[0] for row in cursor.execute(f'DESCRIBE "{quoted}"').fetchall()]
        if known is None or name in known:
            yield name
        else:
            yield from [one for one in known if name.startswith(f"{one}.")] or known


def _unquoted(name: str) -> str:
    """A name as EXPLAIN writes it: in quotes where it is also a keyword."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
