"""Measures rows, bytes and seconds of each operator of a query, or of each stage of a plan.

DuckDB's profiler measures operators. A stage is one SELECT that runs many times, over batches and
partitions; its figures are the sums.
"""

import json
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from caudal.duck.bind import BoundQuery
from caudal.duck.database import one_line
from caudal.duck.operators import PLUMBING, operator_word
from caudal.duck.sandbox import Register, Sandbox, SandboxLimits, Types
from caudal.errors import QueryError
from caudal.results.answers import OperatorProfile
from caudal.sql.planner import Plan

_FRAME = frozenset({"RESULT_COLLECTOR", "EXPLAIN_ANALYZE"})
_UNMEASURED = frozenset({"UNION"})  # DuckDB counts no rows for it: rows out are rows in


def profile_query(cursor: duckdb.DuckDBPyConnection, bound: BoundQuery) -> list[OperatorProfile]:
    """Run a query under the profiler, and close its cursor; return its operators in the order of
    the rows."""
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
        rows_out = rows_in if node["type"] in _UNMEASURED else int(node["intermediate_rows"])
        if not node.get("children"):
            rows_in = int(node.get("rows_scanned", rows_out))
        word = operator_word(node["type"])
        if word in PLUMBING:
            return rows_out
        found.append(
            OperatorProfile(
                query=bound.query.name,
                operator=word,
                table=_table_name(node["extra_info"]),
                rows_in=rows_in,
                rows_out=rows_out,
                bytes_out=int(node["intermediate_size_bytes"]),
                seconds=float(node["timing"]),
            )
        )
        return rows_out

    for root in json.loads(row[1]).get("operator", ()) if row else ():
        visit(root)
    return found


def _table_name(info: Mapping[str, Any]) -> str:
    return str(info.get("Table", "")).split(".")[-1].strip('"')


@dataclass
class _Sums:
    rows_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    seconds: float = 0.0


@dataclass
class Measurements:
    """The total rows, bytes and seconds of the SELECTs of a run, by text. Safe for threads."""

    _sums: dict[str, _Sums] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, sql: str, rows_in: int, rows: pa.Table, seconds: float) -> None:
        with self._lock:
            sums = self._sums.setdefault(sql, _Sums())
            sums.rows_in += rows_in
            sums.rows_out += rows.num_rows
            sums.bytes_out += rows.nbytes
            sums.seconds += seconds

    def drained(self) -> dict[str, tuple[int, int, int, float]]:
        """Return all sums as plain data and begin anew."""
        with self._lock:
            sums, self._sums = self._sums, {}
        return {
            sql: (one.rows_in, one.rows_out, one.bytes_out, one.seconds)
            for sql, one in sums.items()
        }

    def add_drained(self, sums: Mapping[str, tuple[int, int, int, float]]) -> None:
        """Add what another process has measured."""
        with self._lock:
            for sql, (rows_in, rows_out, bytes_out, seconds) in sums.items():
                known = self._sums.setdefault(sql, _Sums())
                known.rows_in += rows_in
                known.rows_out += rows_out
                known.bytes_out += bytes_out
                known.seconds += seconds

    def of(self, texts: Iterable[str]) -> _Sums:
        """Return the sums over these texts."""
        found = [self._sums[text] for text in dict.fromkeys(texts) if text in self._sums]
        return _Sums(
            sum(one.rows_in for one in found),
            sum(one.rows_out for one in found),
            sum(one.bytes_out for one in found),
            sum(one.seconds for one in found),
        )


class MeasuredSandbox(Sandbox):
    """A sandbox that measures its SELECTs."""

    def __init__(
        self, limits: SandboxLimits, register: Register, types: Types, measurements: Measurements
    ) -> None:
        super().__init__(limits, register, types)
        self._measurements = measurements

    def select(self, sql: str, relations: Mapping[str, pa.Table]) -> pa.Table:
        began = time.perf_counter()
        rows = super().select(sql, relations)
        rows_in = sum(relation.num_rows for relation in relations.values())
        self._measurements.add(sql, rows_in, rows, time.perf_counter() - began)
        return rows


def profile_stages(plan: Plan, measured: Measurements) -> tuple[OperatorProfile, ...]:
    """Return the profile of every stage, in the order of the plan."""
    hinted = {hint.scan: hint.sql for hint in plan.hints}
    stages = [
        (scan.queries, scan.name, scan.table, (scan.sql, hinted.get(scan.name, scan.sql)))
        for scan in plan.scans
    ]
    stages += [(fold.queries, fold.name, "", (fold.sql, fold.sql)) for fold in plan.folds]
    stages += [((one.query,), "finish", "", (one.sql, one.sql)) for one in plan.finishes]
    found = []
    for queries, name, table, texts in stages:
        sums = measured.of(texts)
        found.append(
            OperatorProfile(
                query=", ".join(queries),
                operator=name,
                table=table,
                rows_in=sums.rows_in,
                rows_out=sums.rows_out,
                bytes_out=sums.bytes_out,
                seconds=sums.seconds,
            )
        )
    return tuple(found)
