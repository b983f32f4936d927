"""What no engine answers, since the answer would be about Caudal's insides, not about the data."""

import re
from collections.abc import Callable, Iterable

from caudal.errors import UsageError
from caudal.sql.planner.binder import Reads


class RefusedQueryError(UsageError):
    """A query that no plan answers; its caller knows the file that holds it."""

    def __init__(self, query: str, reason: str) -> None:
        super().__init__(f"query {query}: {reason}")
        self.query = query
        self.reason = reason


_CATALOG = re.compile(r"(duckdb|pragma)_\w+")
_ROW_NUMBER = re.compile(r"\browid\b", re.IGNORECASE)


def require_readable(
    sql: str, reads: Reads | None, columns: Iterable[str], is_valid: Callable[[str], bool]
) -> None:
    """Raise UsageError if a query reads DuckDB's catalog, or numbers that rows do not have here.

    `columns` are those of all tables; `is_valid` asks DuckDB about a text.
    """
    catalog = sorted(name for name in (reads.functions if reads else ()) if _CATALOG.match(name))
    if catalog:
        raise UsageError(
            f"it reads DuckDB's own catalog ({', '.join(catalog)}), which says nothing of your "
            "data: DESCRIBE and SUMMARIZE do"
        )
    if reads is None or not _ROW_NUMBER.search(sql):
        return
    if any(column.lower() == "rowid" for column in columns):
        return  # a column of the user's own
    if not is_valid(_ROW_NUMBER.sub("caudal_no_such_column", sql)):  # so it means DuckDB's own
        raise UsageError("rowid: rows have no numbers of their own here; use row_number() OVER ()")
