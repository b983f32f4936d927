"""Finds in DuckDB's plan of a SELECT which tables it reads, how often, and which columns.

The plan must be made with only one optimiser rule: the removal of unused columns.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import duckdb

from caudal.sql.planner import Reads

Known = Callable[[str], tuple[str, Sequence[str]]]
"""Returns a table's name and columns for its name in a plan. Raises LookupError for others."""


def reads_of(cursor: duckdb.DuckDBPyConnection, sql: str, known: Known) -> Reads:
    """Return what a SELECT reads."""
    rows = cursor.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()
    nodes = [node for root in json.loads(rows[0][1]) for node in _walked(root)]
    scans, columns = Counter[str](), dict[str, frozenset[str]]()
    functions = set[str]()
    for info in (node["extra_info"] for node in nodes):
        if "Function" in info:
            functions.add(str(info["Function"]).lower())
        if "Table" in info:
            table, schema = known(_last_name(info["Table"]))
            scans[table] += 1
            columns[table] = columns.get(table, frozenset()) | _columns_read(info, schema)
    plan = json.dumps([_comparable(node) for node in nodes])
    return Reads(scans, columns, frozenset(functions), plan)


def _walked(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from _walked(child)


def _columns_read(info: Mapping[str, Any], schema: Sequence[str]) -> frozenset[str]:
    """Return the columns of a scan; all columns if it lists none.

    `spot.x` is a part of the column `spot`. If a listed name is not a column, return all columns.
    """
    listed = info.get("Projections")
    if listed is None:
        return frozenset(schema)
    known = frozenset(schema)
    found: set[str] = set()
    for name in [listed] if isinstance(listed, str) else listed:
        if name:
            found |= known & set(_beginnings(name)) or known
    return frozenset(found)


def _beginnings(name: str) -> Iterator[str]:
    """Yield the name and each part of it that ends before a dot."""
    yield name
    yield from (name[:place] for place, letter in enumerate(name) if letter == ".")


def _comparable(node: Mapping[str, Any]) -> list[Any]:
    """Return a plan node for comparison: without the database of its table, and estimates."""
    info = {
        key: _last_name(value) if key == "Table" else value
        for key, value in node["extra_info"].items()
        if "Cardinality" not in key
    }
    return [node["name"], info, len(node["children"])]


def _last_name(path: str) -> str:
    """Return the table in `memory.main.t`. A name that is a keyword or has a dot is quoted."""
    if path.endswith('"'):
        inner = path[:-1].replace('""', "\0")
        return inner[inner.rindex('"') + 1 :].replace("\0", '"')
    return path.rsplit(".", 1)[-1]
