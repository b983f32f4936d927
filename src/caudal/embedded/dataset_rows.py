"""Rows into a dataset and out of it, as other Python libraries hold them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caudal.datasets.files import read_file
from caudal.datasets.offered_rows import NAME, offered_rows
from caudal.datasets.parquet import read_rows
from caudal.datasets.shelf import Shelf
from caudal.duck.database import Connection, Relation, read_files, rows_in_memory
from caudal.embedded.dataset_files import paths_in_place
from caudal.embedded.dataset_sources import Source
from caudal.embedded.dataset_views import are_bounds_untrue
from caudal.files.cleaning import Wanted
from caudal.files.pieces import FilePiece, typed_reader
from caudal.model import Application
from caudal.sql.quoting import quote

if TYPE_CHECKING:
    import polars


def rows_source(app: Application, table: str, rows: Any, key: str | None) -> Source:
    """Return rows that are in memory as a source. Without a key, every call is another source."""
    found = offered_rows(app, table, rows, key)

    def cut(wanted: Wanted, batch_bytes: int) -> Iterator[FilePiece]:
        for first, part in found.pieces(list(wanted.columns), batch_bytes):
            read = typed_reader(NAME, part, first, wanted)
            yield FilePiece(NAME, part.nbytes, found.offered.bytes, read)

    return Source(found.offered, cut)


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
    """Return the rows of a table as a relation of DuckDB.

    They are in memory if a file has bounds that DuckDB must not skip rows by: in a database of the
    caller it would, whatever is between the file and a condition.
    """
    paths, contents = paths_in_place(shelf, table), shelf.contents
    (held,) = (one for one in contents.head.tables if one.name == table)
    rows = read_files(connection, [str(path) for path in paths], contents.columns[table])
    if not are_bounds_untrue(held, paths, contents.tables[table]):
        return rows
    kinds = zip(rows.columns, rows.types, strict=True)
    listed = ", ".join(f"CAST({quote(name)} AS {kind}) AS {quote(name)}" for name, kind in kinds)
    return rows_in_memory(connection, arrow_rows(shelf, table)).project(listed)


def _empty(shelf: Shelf, table: str) -> pa.Table:
    found: pa.Table = relation(shelf, table, None).to_arrow_table()
    return found
