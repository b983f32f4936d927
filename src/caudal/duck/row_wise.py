"""Checks that a table's SQL works row by row: each row of `raw` gives one row and depends on
nothing else.

Files are cleaned in batches, in parallel, and on a cluster sometimes more than once. SQL that uses
several rows (a window, an order, a limit, a join) would give other rows for another batch size.
SQL that uses the clock or random numbers would give other rows each time. DuckDB tells what the
SQL does:
1. Its plan may have only projections between the result and one scan of `raw`.
2. Its parse tree may call no function whose value changes from call to call.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb

from caudal.errors import ApplicationError
from caudal.sql import volatile

_WORD = re.compile(r"\w+")
_IN_PASSING = frozenset({"PROJECTION", "CTE"})
_SCAN, _CTE_SCAN = "SEQ_SCAN", "CTE_SCAN"

# SQL names of DuckDB's operators. Others keep DuckDB's name.
_WORDS = {
    "WINDOW": "a window function",
    "STREAMING_WINDOW": "a window function",
    "ORDER_BY": "ORDER BY",
    "TOP_N": "ORDER BY with LIMIT",
    "LIMIT": "LIMIT",
    "STREAMING_LIMIT": "LIMIT",
    "LIMIT_PERCENT": "LIMIT",
    "FILTER": "WHERE",
    "UNNEST": "unnest",
    "HASH_GROUP_BY": "an aggregate or DISTINCT",
    "PERFECT_HASH_GROUP_BY": "an aggregate or DISTINCT",
    "UNGROUPED_AGGREGATE": "an aggregate",
    "UNION": "UNION",
    "STREAMING_SAMPLE": "a sample",
    "RESERVOIR_SAMPLE": "a sample",
}
_JOINS = ("JOIN", "CROSS_PRODUCT", "POSITIONAL_SCAN")

HARMLESS = frozenset({"error"})  # it ends the run or does nothing


def require_row_wise(
    cursor: duckdb.DuckDBPyConnection, sql: str, columns: Sequence[str], origin: str
) -> None:
    """Refuse SQL over `raw` that is not row by row. The SQL must be bound already."""
    explained = cursor.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()
    if word := next(_strange_operators(json.loads(explained[0][1])[0]), None):
        remedy = (
            "leave rows out with a `reject` column instead"
            if word in ("WHERE", "LIMIT", "a sample")
            else "do that in a query, or in a table without files"
        )
        raise ApplicationError(
            f"{origin}: {word} is not row by row, and each row of raw must give one row by itself; "
            f"{remedy}"
        )
    if not _may_change(sql):
        return
    names = {name.lower() for name in columns}
    serialized = cursor.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    if word := next(_strange_names(json.loads(serialized[0][0]), names), None):
        raise ApplicationError(
            f"{origin}: {word} depends on more than the row, so that cleaning twice would give two "
            "answers; use it in a query instead"
        )


def _may_change(sql: str) -> bool:
    """Return whether the text has a word that may violate rule 2; the tree says whether it does.

    The tree of a table with thousands of columns takes as long to read as to bind.
    """
    words = set(_WORD.findall(sql.lower()))
    return not words.isdisjoint(volatile.WORDS | {"rowid"})


def _strange_operators(plan: dict[str, Any]) -> Iterator[str]:
    """Yield the operators that violate rule 1."""
    definitions: dict[str, Any] = {}
    node = plan
    while True:
        name, info, children = node["name"].strip(), node["extra_info"], node["children"]
        if name == "CTE":
            definitions[info["Table Index"]] = children[0]
            node = children[1]
        elif name == _CTE_SCAN:
            node = definitions[info["CTE Index"]]
        elif name in _IN_PASSING:
            node = children[0]
        else:
            if name != _SCAN or not str(info.get("Table", "")).endswith(".raw"):
                yield _word(name)
            return


def _word(operator: str) -> str:
    if any(part in operator for part in _JOINS):
        return "a join or a subquery"
    if operator.endswith("_SCAN"):
        return "a SELECT that does not read `raw`"
    return _WORDS.get(operator, operator.lower().replace("_", " "))


def _strange_names(tree: Any, columns: set[str]) -> Iterator[str]:
    """Yield the calls that violate rule 2, and rowid, which `raw` does not have."""
    if isinstance(tree, list):
        for item in tree:
            yield from _strange_names(item, columns)
    if not isinstance(tree, dict):
        return
    if tree.get("class") == "FUNCTION" and _changes(tree):
        yield f"{str(tree['function_name']).lower()}()"
    if tree.get("class") == "COLUMN_REF":
        name = str(tree["column_names"][-1]).lower()
        if name not in columns and (
            name == "rowid" or (len(tree["column_names"]) == 1 and name in volatile.KEYWORDS)
        ):
            yield name
    for value in tree.values():
        yield from _strange_names(value, columns)


def _changes(call: dict[str, Any]) -> bool:
    """Return whether a call may have another value when it is repeated."""
    name = str(call["function_name"]).lower()
    if name in volatile.WITH_ONE_ARGUMENT:
        return len(call["arguments"]) == 1
    return name in volatile.CHANGING | volatile.UNTOLD
