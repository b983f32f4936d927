"""DuckDB's own parser and binder, for the planner: over empty tables, so no row is ever read."""

import json
from collections.abc import Mapping
from typing import Any

import duckdb

from caudal.engine.database import one_line
from caudal.engine.sandbox import Register
from caudal.errors import UsageError
from caudal.sql.planner import OutputColumn, TableSchema, types

_REDUNDANT = frozenset(
    ("query_location", "query_location_length", "qualified_name", "is_operator", "is_implicit")
)
_NEGATIONS = {
    "OPERATOR_IS_NULL": "OPERATOR_IS_NOT_NULL",
    "COMPARE_IN": "COMPARE_NOT_IN",
    "COMPARE_NOT_DISTINCT_FROM": "COMPARE_DISTINCT_FROM",
    "COMPARE_DISTINCT_FROM": "COMPARE_NOT_DISTINCT_FROM",
}
_NEGATED_FUNCTIONS = {"~~": "!~~", "~~*": "!~~*"}


class DuckDBBinder:
    """Answers `caudal.sql.planner.Binder` for tables of the given schemas."""

    def __init__(self, tables: Mapping[str, TableSchema], register: Register | None = None) -> None:
        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        self._tables = frozenset(tables)
        if register is not None:
            register(self._connection)
        for table, schema in tables.items():
            columns = ", ".join(f"{_quoted(name)} {kind}" for name, kind in schema.items())
            self._connection.execute(f"CREATE TABLE {_quoted(table)} ({columns})")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def close(self) -> None:
        self._connection.close()

    def table_names(self, sql: str) -> set[str]:
        """The tables that a SELECT reads; all whose names occur in a text that DuckDB executes
        but does not look through, such as one with #1."""
        try:
            return set(self._connection.get_table_names(sql))
        except duckdb.Error:
            self.columns(sql)
            return {table for table in self._tables if table.lower() in sql.lower()}

    def columns(self, sql: str) -> list[OutputColumn]:
        try:
            relation = self._connection.sql(sql)
            return [
                OutputColumn(name, str(kind))
                for name, kind in zip(relation.columns, relation.types, strict=True)
            ]
        except duckdb.Error as error:
            raise UsageError(one_line(error)) from error

    def same(self, sql: str, other: str) -> bool:
        return is_same_statement(self._connection, sql, other)


def is_same_statement(connection: duckdb.DuckDBPyConnection, one: str, other: str) -> bool:
    """Whether DuckDB's parser reads the same statement from two texts."""
    tree = _parsed(connection, one)
    return tree is not None and tree == _parsed(connection, other)


def _parsed(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    """Return DuckDB's tree of a statement, or None where it has none to show."""
    asked = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql])
    ((text,),) = asked.fetchall()  # all of it: an unread rest would block the connection
    tree = json.loads(text)
    return None if tree.get("error") else _plain(tree)


def _plain(tree: Any) -> Any:
    """The tree with one spelling for what DuckDB spells in several ways."""
    if isinstance(tree, list):
        return [_plain(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    plain = {key: _plain(value) for key, value in tree.items() if key not in _REDUNDANT}
    if plain.get("null_order") == "ORDER_DEFAULT":
        plain["null_order"] = "NULLS LAST"
    if isinstance(plain.get("type_name"), str):
        plain["type_name"] = types.normal(plain["type_name"])
    if plain.get("type") == "OPERATOR_CAST":
        plain["child"] = _digits(plain["child"])
    if plain.get("ref_type") and _is_true(plain.get("condition")):
        plain.update(condition=None, ref_type="CROSS")
    return _without_not(plain)


def _without_not(node: dict[str, Any]) -> dict[str, Any]:
    """NOT of a condition that has a negation of its own, as that."""
    if node.get("type") != "OPERATOR_NOT" or len(node["children"]) != 1:
        return node
    (inner,) = node["children"]
    if inner.get("type") in _NEGATIONS:
        return {**inner, "type": _NEGATIONS[inner["type"]]}
    if inner.get("function_name") in _NEGATED_FUNCTIONS:
        return {**inner, "function_name": _NEGATED_FUNCTIONS[inner["function_name"]]}
    return node


def _digits(node: Any) -> Any:
    """What is cast, without whether its digits stood in quotes."""
    literal = node.get("literal") if isinstance(node, dict) else None
    return literal["text"] if literal and str(literal.get("text")).isdigit() else node


def _is_true(condition: Any) -> bool:
    return isinstance(condition, dict) and (condition.get("literal") or {}).get("text") == "true"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
