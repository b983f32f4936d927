"""What no engine answers, since the answer would be about Caudal's insides, not about the data."""

import re
from collections.abc import Mapping

from caudal.errors import UsageError
from caudal.sql.planner.binder import Binder, Reads
from caudal.sql.planner.plan import TableSchema

_CATALOG = re.compile(r"(duckdb|pragma)_\w+")
_ROW_NUMBER = re.compile(r"\browid\b", re.IGNORECASE)


def require_readable(
    sql: str, reads: Reads | None, binder: Binder, tables: Mapping[str, TableSchema]
) -> None:
    """Raise UsageError if a query reads DuckDB's catalog, or numbers that rows do not have here."""
    catalog = sorted(name for name in (reads.functions if reads else ()) if _CATALOG.match(name))
    if catalog:
        raise UsageError(
            f"it reads DuckDB's own catalog ({', '.join(catalog)}), which says nothing of your "
            "data: DESCRIBE and SUMMARIZE do"
        )
    named = any(column.lower() == "rowid" for schema in tables.values() for column in schema)
    if not named and _ROW_NUMBER.search(sql) and reads is not None and _uses_rowid(sql, binder):
        raise UsageError("rowid: rows have no numbers of their own here; use row_number() OVER ()")


def _uses_rowid(sql: str, binder: Binder) -> bool:
    """Whether the name means DuckDB's own numbers: by another name, there is no such column."""
    try:
        binder.columns(_ROW_NUMBER.sub("caudal_no_such_column", sql))
    except UsageError:
        return True
    return False
