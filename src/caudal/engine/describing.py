"""What DuckDB says of SQL on empty tables: the columns it gives, their types, the columns it reads.

Which columns a SELECT reads is what remains in DuckDB's plan once unused columns are removed.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb

from caudal.engine.database import one_line
from caudal.errors import ApplicationError
from caudal.sql.footprint import Schema, output_names
from caudal.sql.parsing import quote


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
        _require_one_select(statements, origin)
        rows = cursor.execute(f"DESCRIBE {sql}").fetchall()
    except duckdb.Error as error:
        raise ApplicationError(f"{origin}: {one_line(error)}") from None
    names = [row[0] for row in rows]
    declared = output_names(sql)
    if [name.lower() for name in names] == [name.lower() for name in declared]:
        names = declared  # DuckDB keeps the case of `"Title"` in `"Title" AS title`
    return [(name, row[1]) for name, row in zip(names, rows, strict=True)]


def _require_one_select(statements: list[duckdb.Statement], origin: str) -> None:
    if len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT:
        return
    if statements and statements[0].type == duckdb.StatementType.MULTI:
        # DuckDB makes several statements of a PIVOT: the first ones look up the values.
        raise ApplicationError(
            f"{origin}: a PIVOT must list the values that become columns, since Caudal binds it "
            "before any row is read: PIVOT t ON kind IN ('a', 'b') USING count(*)"
        )
    raise ApplicationError(f"{origin}: must hold one SELECT and nothing else")


def types_given(cursor: duckdb.DuckDBPyConnection, sql: str) -> list[str] | None:
    """The types of a SELECT's columns; None when it does not bind."""
    try:
        return [row[1] for row in cursor.execute(f"DESCRIBE {sql}").fetchall()]
    except duckdb.Error:
        return None


@dataclass(frozen=True)
class Scans:
    """The scans in DuckDB's plan of a SELECT: how many of each table, and the columns they read."""

    counts: Counter[str] = field(default_factory=Counter)
    columns: dict[str, set[str]] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)  # table functions, in lower case


def scans_of(cursor: duckdb.DuckDBPyConnection, sql: str, origin: str) -> Scans:
    """Return which tables a SELECT scans, how often, and which columns of them it reads."""
    try:
        row = cursor.execute(f"EXPLAIN (FORMAT json) {sql}").fetchone()
    except duckdb.Error as error:  # a constant that cannot be converted fails only here
        raise ApplicationError(f"{origin}: {one_line(error)}") from None
    found = Scans()

    def visit(node: dict[str, Any]) -> None:
        for child in node["children"]:
            visit(child)
        info = node["extra_info"]
        if "Function" in info:
            found.functions.add(str(info["Function"]).lower())
        if "Table" in info:
            name = _unquoted(info["Table"].split(".")[-1])
            found.counts[name] += 1
            found.columns.setdefault(name, set()).update(
                _whole_columns(cursor, name, info.get("Projections"))
            )

    for root in json.loads(row[1]) if row else ():
        visit(root)
    return found


_ABOUT_DUCKDB = ("duckdb_", "pragma_")
_SAME_EVERYWHERE = frozenset({"duckdb_functions", "duckdb_keywords", "pragma_version"})


def refuse_catalog(scans: Scans, origin: str) -> None:
    """Refuse a SELECT over DuckDB's own catalog: the application's tables are not in it."""
    for name in sorted(scans.functions - _SAME_EVERYWHERE):
        if name.startswith(_ABOUT_DUCKDB):
            raise ApplicationError(
                f"{origin}: reads DuckDB's catalog ({name}), which does not hold the application's "
                "tables; app.toml lists them, and DESCRIBE SELECT * FROM a table tells its columns"
            )


def _whole_columns(
    cursor: duckdb.DuckDBPyConnection, table: str, projections: str | list[str] | None
) -> Iterator[str]:
    """Yield the columns that a scan's projections mean: `spot.x` is a part of the column `spot`.

    A scan that shows no projections at all reads every column.
    """
    names = [projections] if isinstance(projections, str) else projections
    known: list[str] | None = None
    if names is None or any("." in name for name in names):
        known = [row[0] for row in cursor.execute(f"DESCRIBE {quote(table)}").fetchall()]
    if names is None:
        yield from known or ()
        return
    for name in filter(None, names):
        if known is None or name in known:
            yield name
        else:
            yield from [one for one in known if name.startswith(f"{one}.")] or known


def _unquoted(name: str) -> str:
    """Return a name as it is: EXPLAIN writes it in quotes where it is also a keyword."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
