"""Queries that no engine answers, because they read DuckDB's internals and not the data."""

import re
from collections.abc import Callable, Iterable

from caudal.errors import UsageError
from caudal.sql.planner.binder import Reads


class RefusedQueryError(UsageError):
    """A query that no plan answers. The caller adds the file that holds the query."""

    def __init__(self, query: str, reason: str) -> None:
        super().__init__(f"query {query}: {reason}")
        self.query = query
        self.reason = reason


_CATALOG = re.compile(r"(duckdb|pragma)_\w+")
_ROW_NUMBER = re.compile(r"\browid\b", re.IGNORECASE)


def require_readable(
    sql: str, reads: Reads | None, columns: Iterable[str], is_valid: Callable[[str], bool]
) -> None:
    """Raise UsageError if a query reads DuckDB's catalog or `rowid`.

    `columns` are those of all tables. `is_valid` asks DuckDB whether a text is valid.
    """
    catalog = sorted(name for name in (reads.functions if reads else ()) if _CATALOG.match(name))
    if catalog:
        raise UsageError(
            f"it reads DuckDB's own catalog ({', '.join(catalog)}), which does not describe your "
            "data: use DESCRIBE or SUMMARIZE"
        )
    if reads is None or not _ROW_NUMBER.search(sql):
        return
    if any(column.lower() == "rowid" for column in columns):
        return  # a column of the data
    if not is_valid(_ROW_NUMBER.sub("caudal_no_such_column", sql)):  # so it is DuckDB's rowid
        raise UsageError("rowid: rows have no numbers here; use row_number() OVER ()")
