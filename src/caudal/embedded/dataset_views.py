"""The tables of a dataset as views of its Parquet files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from caudal.datasets.documents import DatasetTable
from caudal.duck.database import Connection
from caudal.sql.quoting import quote

PLACE = "file_row_number"  # the column with the place of a row in its file


def create_views(
    connection: Connection, tables: Sequence[DatasetTable], files: Mapping[str, Sequence[Path]]
) -> None:
    """Create a view for each table; one that nobody reads, or without files, has no rows."""
    for table in tables:
        paths = files.get(table.name, ())
        connection.execute(f"CREATE OR REPLACE VIEW {quote(table.name)} AS {_view(table, paths)}")


def parquet_rows(paths: Sequence[Path], *, with_places: bool = False) -> str:
    """Return SQL for the rows of files, one behind the other."""
    listed = ", ".join(_text(str(path)) for path in paths)
    places = f", {PLACE} = true" if with_places else ""
    return f"read_parquet([{listed}], hive_partitioning = false{places})"


def _view(table: DatasetTable, paths: Sequence[Path]) -> str:
    if not paths:
        nulls = ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in table.columns)
        return f"SELECT {nulls} LIMIT 0"
    columns = ", ".join(quote(name) for name, _ in table.columns)
    return f"SELECT {columns} FROM {parquet_rows(paths)}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
