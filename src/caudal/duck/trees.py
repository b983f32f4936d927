"""DuckDB's parse tree of a statement, in a normal form for comparisons.

The normal form removes only differences that change no answer: positions in the text, names that
are stored twice, a comma instead of CROSS JOIN, the default order of nulls, aliases of types, and
NOT around a condition that has its own negation. All other parts must be equal for two trees to be
equal.
"""

import json
from typing import Any

from caudal.duck.empty_database import lent_database
from caudal.sql.planner import types

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
_NOWHERE = 2**64 - 1  # position of nodes that DuckDB added itself
_INTERVAL_TYPES = ("DOUBLE", "INTEGER", "BIGINT")


def plain(tree: Any) -> Any:
    """Return the tree in normal form, or the error of a text that has no tree."""
    if isinstance(tree, list):
        return [plain(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    kept = {key: plain(value) for key, value in tree.items() if key not in _REDUNDANT}
    if kept.get("null_order") == "ORDER_DEFAULT":
        kept["null_order"] = "NULLS LAST"
    if isinstance(kept.get("type_name"), str):
        kept["type_name"] = types.normal(kept["type_name"])
    if _is_of_interval(tree):
        kept["child"] = _digits(kept["child"])
    if kept.get("ref_type") in ("REGULAR", "CROSS") and _is_true(kept.get("condition")):
        kept.update(condition=None, ref_type="CROSS")
    return _without_not(kept)


def _without_not(node: dict[str, Any]) -> dict[str, Any]:
    """Replace NOT of a condition that has its own negation with that negation."""
    if node.get("type") != "OPERATOR_NOT" or len(node["children"]) != 1:
        return node
    (inner,) = node["children"]
    if inner.get("type") in _NEGATIONS:
        return {**inner, "type": _NEGATIONS[inner["type"]]}
    if inner.get("function_name") in _NEGATED_FUNCTIONS:
        return {**inner, "function_name": _NEGATED_FUNCTIONS[inner["function_name"]]}
    return node


def _is_of_interval(node: dict[str, Any]) -> bool:
    """Return whether a node is the cast that DuckDB adds to the number in INTERVAL 1 DAY or
    INTERVAL '1' DAY."""
    if node.get("type") != "OPERATOR_CAST" or node.get("query_location") != _NOWHERE:
        return False
    return (node.get("type_expr") or {}).get("type_name") in _INTERVAL_TYPES


def _digits(node: Any) -> Any:
    """Return the operand of the cast, the same for digits with and without quotes."""
    literal = node.get("literal") if isinstance(node, dict) else None
    text = str(literal.get("text")) if literal else ""
    return text if text.isdecimal() and not text.startswith("0") else node


def _is_true(condition: Any) -> bool:
    literal = condition.get("literal") if isinstance(condition, dict) else None
    return literal == {"kind": "BOOLEAN", "text": "true"}


def parse_tree(sql: str) -> Any:
    """Return DuckDB's parse tree of a statement. The tree itself contains any error."""
    with lent_database() as connection:
        rows = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    return json.loads(rows[0][0])


def tree_text(tree: Any) -> str:
    """Return a parse tree as SQL."""
    with lent_database() as connection:
        text = json.dumps(tree)
        rows = connection.execute("SELECT json_deserialize_sql(?::JSON)", [text]).fetchall()
    return str(rows[0][0])
