"""Data frames as tables of an ad hoc SELECT: pandas, Polars, Arrow, and results of Caudal.

A frame is named by whoever asks: variables are never looked up by name. Its rows are taken as they
are, without a table's SQL. The index of a pandas frame is left out, as DuckDB and Polars do.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from caudal.errors import UsageError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def arrow_tables(given: Mapping[str, Any], taken: Iterable[str]) -> dict[str, pa.Table]:
    """Return the frames as Arrow tables; raise UsageError for a bad name or what is no frame."""
    names = {name.lower(): f"the application has a table {name!r}" for name in taken}
    names |= {"raw": "`raw` is the text of a table's files"}
    tables = {}
    for name, frame in given.items():
        if not isinstance(name, str) or not _NAME.match(name):
            raise UsageError(f"{name!r} cannot be the name of a table: use letters, digits and _")
        if name.lower() in names:
            raise UsageError(f"tables: {names[name.lower()]}: choose another name than {name!r}")
        names[name.lower()] = f"{name!r} is given twice"
        tables[name] = _arrow_table(name, frame)
    return tables


def _arrow_table(name: str, frame: Any) -> pa.Table:
    try:
        table = _converted(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"table {name!r} cannot be converted to Arrow: {reason}") from None
    if table is None:
        raise UsageError(
            f"table {name!r} is a {type(frame).__name__}: give a frame of pandas or Polars, an "
            "Arrow table, or a result"
        )
    _check_columns(name, table.column_names)
    return table


def _converted(frame: Any) -> pa.Table | None:
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if type(frame).__module__.split(".")[0] == "pandas" and hasattr(frame, "columns"):
        return pa.Table.from_pandas(frame, preserve_index=False)
    return pa.table(frame) if hasattr(frame, "__arrow_c_stream__") else None


def _check_columns(name: str, columns: list[str]) -> None:
    if not columns:
        raise UsageError(f"table {name!r} has no columns")
    seen: dict[str, str] = {}
    for column in columns:
        if column.lower() in seen:
            raise UsageError(
                f"table {name!r}: columns {seen[column.lower()]!r} and {column!r} have the same "
                "name for SQL; rename one"
            )
        seen[column.lower()] = column
