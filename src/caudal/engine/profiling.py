"""What each operator of a query does, measured by DuckDB's own profiler."""

import json
from typing import Any

import duckdb

from caudal.answers import OperatorProfile
from caudal.engine.catalog import BoundQuery
from caudal.engine.database import one_line
from caudal.engine.explaining import PLUMBING, operator_word
from caudal.errors import QueryError

_FRAME = frozenset({"RESULT_COLLECTOR", "EXPLAIN_ANALYZE"})


def profile_query(
    connection: duckdb.DuckDBPyConnection, bound: BoundQuery
) -> list[OperatorProfile]:
    """Run a query under the profiler; its operators in the order in which rows pass."""
    cursor = connection.cursor()
    try:
        row = cursor.execute(f"EXPLAIN (ANALYZE, FORMAT json) {bound.sql}").fetchone()
    except duckdb.Error as error:
        raise QueryError(f"{bound.query.origin}: {one_line(error)}") from None
    finally:
        cursor.close()
    found: list[OperatorProfile] = []

    def visit(node: dict[str, Any]) -> int:
        rows_in = sum(visit(child) for child in node.get("children", ()))
        if node["type"] in _FRAME:
            return rows_in
        rows_out = int(node["intermediate_rows"])
        word = operator_word(node["type"])
        if word in PLUMBING:
            return rows_out
        found.append(
            OperatorProfile(
                query=bound.query.name,
                operator=word,
                table=str(node["extra_info"].get("Table", "")).split(".")[-1],
                rows_in=rows_in,
                rows_out=rows_out,
                bytes_out=int(node["intermediate_size_bytes"]),
                seconds=float(node["timing"]),
            )
        )
        return rows_out

    for root in json.loads(row[1])["operator"] if row else ():
        visit(root)
    return found
