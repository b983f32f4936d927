"""The tables of a dataset as views of its Parquet files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from caudal.datasets.contents import HeldFile
from caudal.datasets.documents import DatasetTable
from caudal.datasets.parquet import has_untrue_bounds, may_have_nan
from caudal.datasets.shelf import Shelf
from caudal.duck.database import Connection
from caudal.sql.quoting import quote

PLACE = "file_row_number"  # the column with the place of a row in its file


def create_views(connection: Connection, shelf: Shelf, files: Mapping[str, Sequence[Path]]) -> None:
    """Create a view for each table; one that nobody reads, or without files, has no rows."""
    contents = shelf.contents
    for table in contents.head.tables:
        paths = files.get(table.name, ())
        rows = _view(table, paths, contents.tables[table.name])
        connection.execute(f"CREATE OR REPLACE VIEW {quote(table.name)} AS {rows}")


def are_bounds_untrue(
    table: DatasetTable, paths: Sequence[Path], files: Sequence[HeldFile]
) -> bool:
    """Return whether DuckDB would skip rows with NaN because of the bounds in a file.

    The footer is read only of files that may have NaN.
    """
    columns = dict(table.columns)
    return any(
        may_have_nan(file.stats, columns) and has_untrue_bounds(path)
        for path, file in zip(paths, files, strict=True)
    )


def parquet_rows(paths: Sequence[Path], *, with_places: bool = False) -> str:
    """Return SQL for the rows of files, one behind the other."""
    listed = ", ".join(_text(str(path)) for path in paths)
    places = f", {PLACE} = true" if with_places else ""
    return f"read_parquet([{listed}], hive_partitioning = false{places})"


def _view(table: DatasetTable, paths: Sequence[Path], files: Sequence[HeldFile]) -> str:
    if not paths:
        nulls = ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in table.columns)
        return f"SELECT {nulls} LIMIT 0"
    columns = ", ".join(quote(name) for name, _ in table.columns)
    rows = f"SELECT {columns} FROM {parquet_rows(paths)}"
    # No condition gets below a limit, so nothing is skipped by bounds. The limit itself leaves out
    # no row. This needs the rule off that takes rows for as bounded as their files (ADR 74).
    return f"{rows} LIMIT {_MOST_ROWS}" if are_bounds_untrue(table, paths, files) else rows


_MOST_ROWS = 2**63 - 1


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
