"""DuckDB's parser and binder for the planner. Its tables are empty, so no row is ever read."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from caudal.duck import bound_plans, kept_names, trees
from caudal.duck.database import one_line
from caudal.duck.empty_database import disable_rules
from caudal.duck.reads import reads_of
from caudal.duck.sandbox import Register
from caudal.errors import UsageError
from caudal.sql.planner import OutputColumn, Reads, TableSchema
from caudal.sql.planner.text_checks import Edit, SelectItem
from caudal.sql.quoting import folded, quote
from caudal.sql.statements import not_one_select

_NARROW = "caudal_narrow"  # a second database, whose tables have fewer columns


class DuckDBBinder:
    """An implementation of `caudal.sql.planner.Binder` for tables of the given schemas."""

    def __init__(self, tables: Mapping[str, TableSchema], register: Register | None = None) -> None:
        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        self._tables = {folded(table): (table, dict(schema)) for table, schema in tables.items()}
        if register is not None:
            register(self._connection)
        for table, schema in tables.items():
            self._connection.execute(_creating(table, schema, list(schema)))
        self._connection.execute(f"ATTACH ':memory:' AS {_NARROW}")
        self._plans = self._cursor("memory")
        self._narrowed = self._cursor(_NARROW)
        self._connection.execute("SET GLOBAL TimeZone = 'UTC'")  # as in every engine
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def _cursor(self, database: str) -> duckdb.DuckDBPyConnection:
        """Return a cursor whose plans do not depend on the tables being empty."""
        cursor = self._connection.cursor()
        rules = [row[0] for row in cursor.execute("FROM duckdb_optimizers()").fetchall()]
        disable_rules(cursor, *(rule for rule in rules if rule != "unused_columns"))
        cursor.execute(f"USE {database}")
        return cursor

    def close(self) -> None:
        for cursor in (self._narrowed, self._plans, self._connection):
            cursor.close()

    def table_names(self, sql: str) -> set[str]:
        """Return the tables that a SELECT reads.

        DuckDB cannot list them for some texts that it executes, such as one with USING. Then return
        all tables whose names occur as words in the text.
        """
        try:
            return set(self._connection.get_table_names(sql))
        except duckdb.Error:
            self.columns(sql)
            return {table for name, (table, _) in self._tables.items() if _has_word(sql, name)}

    def columns(self, sql: str) -> list[OutputColumn]:
        try:
            read = self._connection.extract_statements(sql)
            if [one.type for one in read] != [duckdb.StatementType.SELECT]:
                raise UsageError(not_one_select(sql))
            relation = self._connection.sql(sql)
            return [
                OutputColumn(name, str(kind))
                for name, kind in zip(relation.columns, relation.types, strict=True)
            ]
        except duckdb.Error as error:
            raise UsageError(one_line(error)) from error

    def same(self, sql: str, other: str) -> bool:
        return is_same_statement(self._connection, sql, other)

    def mean_same(self, sql: str, other: str) -> bool:
        return bound_plans.mean_same(self._connection, sql, other)

    def change(self, sql: str, edits: Sequence[Edit], items: Sequence[SelectItem]) -> str | None:
        return kept_names.change(sql, edits, items)

    def reads(self, sql: str) -> Reads | None:
        return self._reads(self._plans, sql, {})

    def reads_over(self, sql: str, columns: Mapping[str, Sequence[str]]) -> Reads | None:
        kept = {folded(table): list(names) for table, names in columns.items()}
        for name, (table, schema) in self._tables.items():
            if name in kept:
                self._narrowed.execute(_creating(table, schema, kept[name]))
            else:
                self._narrowed.execute(f"DROP TABLE IF EXISTS {quote(table)}")
        return self._reads(self._narrowed, sql, kept)

    def _reads(
        self, cursor: duckdb.DuckDBPyConnection, sql: str, kept: Mapping[str, list[str]]
    ) -> Reads | None:
        def known(name: str) -> tuple[str, Sequence[str]]:
            table, schema = self._tables[folded(name)]
            return table, kept.get(folded(name), list(schema))

        try:
            return reads_of(cursor, sql, known)
        except (duckdb.Error, ValueError, LookupError, RecursionError):
            return None


def is_same_statement(connection: duckdb.DuckDBPyConnection, one: str, other: str) -> bool:
    """Return whether both texts have the same parse tree; False if one has no tree."""
    tree = _tree(connection, one)
    return tree.get("error") is False and bool(tree == _tree(connection, other))


def _tree(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    asked = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql])
    ((tree,),) = asked.fetchall()  # fetch all rows: unread rows would block the connection
    return dict(trees.plain(json.loads(tree)))


def _has_word(sql: str, name: str) -> bool:
    written = re.escape(name.replace('"', '""'))
    return re.search(rf"(?<!\w){written}(?!\w)", sql.lower()) is not None


def _creating(table: str, schema: TableSchema, columns: Sequence[str]) -> str:
    listed = ", ".join(f"{quote(name)} {schema[name]}" for name in columns)
    return f"CREATE OR REPLACE TABLE {quote(table)} ({listed})"
