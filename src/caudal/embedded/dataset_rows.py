"""Rows into a dataset and out of it, as other Python libraries hold them."""

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caudal.datasets.files import read_file
from caudal.datasets.parquet import read_rows
from caudal.datasets.shelf import Shelf
from caudal.datasets.sources import Offered
from caudal.duck.database import Connection, Relation, read_files
from caudal.embedded.dataset_files import paths_in_place
from caudal.embedded.dataset_sources import Source
from caudal.errors import UsageError
from caudal.files.cleaning import Wanted
from caudal.files.pieces import FilePiece, require_columns, typed_reader
from caudal.formats.digest import digest
from caudal.model import Application

if TYPE_CHECKING:
    import polars

_NAME = "appended rows"
_PIECE_ROWS = 65_536


def rows_source(app: Application, table: str, rows: Any, key: str | None) -> Source:
    """Return rows that are in memory as a source. Without a key, every call is another source."""
    known = [one.name for one in app.tables]
    if table not in known:
        raise UsageError(f"{app.name} has no table {table!r}; its tables are: {', '.join(known)}")
    held = _arrow(rows)
    name = f"{_NAME} {key}" if key is not None else f"{_NAME} {uuid.uuid4()}"
    offered = Offered(table, name, held.nbytes, digest(name.encode()), name)

    def cut(wanted: Wanted, batch_bytes: int) -> Iterator[FilePiece]:
        columns = list(wanted.columns)
        require_columns(held.column_names, columns, _NAME, table)
        for start in range(0, max(1, held.num_rows), _PIECE_ROWS):
            part = held.select(columns).slice(start, _PIECE_ROWS)
            read = typed_reader(_NAME, part, start + 1, wanted)
            yield FilePiece(_NAME, part.nbytes, held.nbytes, read)

    return Source(offered, cut)


def arrow_rows(shelf: Shelf, table: str) -> pa.Table:
    """Return the rows of a table, in their order."""
    files = shelf.contents.tables[table]
    if not files:
        return _empty(shelf, table)
    return read_rows(read_file(shelf.store, table, file) for file in files)


def lazy_frame(shelf: Shelf, table: str) -> "polars.LazyFrame":
    """Return the rows of a table as a lazy frame of Polars."""
    import polars

    paths = paths_in_place(shelf, table)
    if not paths:
        frame = polars.from_arrow(_empty(shelf, table))
        assert isinstance(frame, polars.DataFrame)
        return frame.lazy()
    return polars.scan_parquet(paths, glob=False)


def relation(shelf: Shelf, table: str, connection: Connection | None) -> Relation:
    """Return the rows of a table as a relation of DuckDB."""
    paths = [str(path) for path in paths_in_place(shelf, table)]
    return read_files(connection, paths, dict(shelf.contents.columns[table]))


def _empty(shelf: Shelf, table: str) -> pa.Table:
    found: pa.Table = relation(shelf, table, None).to_arrow_table()
    return found


def _arrow(rows: Any) -> pa.Table:
    """Convert rows to an Arrow table; raise UsageError for anything that holds no rows."""
    try:
        if isinstance(rows, pa.Table):
            return rows
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.table(rows)
        if hasattr(rows, "to_arrow"):
            return rows.to_arrow()
        if hasattr(rows, "iterrows"):
            return pa.Table.from_pandas(rows, preserve_index=False)
        listed = list(rows)
        names = list(dict.fromkeys(name for row in listed for name in row))
        texts = [[_text(row.get(name)) for row in listed] for name in names]
        return pa.table([pa.array(one, pa.string()) for one in texts], names=names)
    except (TypeError, AttributeError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"append takes rows: dictionaries, an Arrow table or a frame ({reason})"
        ) from None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
