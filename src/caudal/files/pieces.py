"""Pieces of a table's files, each readable as columns of text.

Cutting a file is sequential and cheap. Reading a piece is expensive, and any thread may do it.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.errors import DataError
from caudal.files.find import COMPRESSION, PARQUET, shown_path
from caudal.files.raw_records import (
    RawRecords,
    no_records,
    records_of_batch,
    records_of_rows,
)
from caudal.files.rejected import RejectedRows
from caudal.files.typed_texts import texts_of
from caudal.kernels.csv import (
    NO_DAMAGE,
    Batch,
    DamagedLines,
    Later,
    NumberColumn,
    Numbers,
    Stream,
    cut_batches,
    read_batch,
)

_PARQUET_ROWS = 65_536
_HEADER_BYTES = 65_536


@dataclass(frozen=True)
class TextRows:
    """Rows of one file as columns of text, with their line numbers (Parquet: row numbers)."""

    file: str
    table: pa.Table
    lines: Callable[[NDArray[np.int64]], NDArray[np.int64]] = field(repr=False)
    damaged: DamagedLines = NO_DAMAGE
    repaired: int = 0
    numbers: tuple[Numbers, ...] = ()  # one for each of `Wanted.numbers`
    later: Later = field(default=lambda rows: {}, repr=False)  # reads deferred columns of some rows
    records: RawRecords = field(default=no_records, repr=False)


@dataclass(frozen=True)
class FilePiece:
    """A part of a file, cut but not yet read. `position` is its end offset in the file."""

    file: str
    bytes: int
    position: int
    read: Callable[[], TextRows] = field(repr=False)


@dataclass(frozen=True)
class Cleaned:
    """The kept and the rejected rows of one piece, both in line order.

    `accepted` counts all clean rows, including rows that no query can see.
    """

    rows: pa.Table
    accepted: int
    rejected: RejectedRows
    repaired: int
    piece: FilePiece


@dataclass(frozen=True)
class Wanted:
    """The columns to read from a table's files: as text, as numbers, or deferred.

    Deferred columns are read later, perhaps for some rows only.
    """

    table: str
    texts: tuple[str, ...]
    numbers: tuple[NumberColumn, ...] = ()
    later: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Return all wanted columns of the files, each once."""
        numbers = (one.column for one in self.numbers)
        return tuple(dict.fromkeys([*self.texts, *self.later, *numbers]))


def pieces(path: Path, wanted: Wanted, *, batch_bytes: int) -> Iterator[FilePiece]:
    """Yield the pieces of one file with the wanted columns."""
    with one_line_errors(path):
        if is_parquet(path):
            yield from _parquet_pieces(path, wanted)
        else:
            yield from _csv_pieces(path, wanted, batch_bytes)


def column_names(path: Path) -> tuple[str, ...]:
    """Return the column names of a file in file order."""
    with one_line_errors(path):
        if is_parquet(path):
            import pyarrow.parquet as pq

            return tuple(pq.read_schema(path).names)
        with path.open("rb") as file:
            batches = cut_batches(
                text_stream(path, file), shown_path(path), batch_bytes=_HEADER_BYTES
            )
            return next(batches).header.names


@contextlib.contextmanager
def one_line_errors(path: Path) -> Iterator[None]:
    """Raise read errors as a DataError with a one-line message that names the file."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        text = " ".join((reason or str(error)).split())
        raise DataError(f"cannot read {shown_path(path)}: {text}") from error


def _csv_pieces(path: Path, wanted: Wanted, batch_bytes: int) -> Iterator[FilePiece]:
    with path.open("rb") as file:
        stream = text_stream(path, file)
        yield from csv_pieces(stream, shown_path(path), wanted, batch_bytes, file.tell)


def csv_pieces(
    stream: Stream, name: str, wanted: Wanted, batch_bytes: int, tell: Callable[[], int]
) -> Iterator[FilePiece]:
    """Yield the pieces of CSV text; `tell` gives the position that a progress display shows."""
    columns = wanted.columns
    for batch in cut_batches(stream, name, batch_bytes=batch_bytes, wanted=columns):
        if batch.number == 0:
            require_columns(batch.header.names, columns, name, wanted.table)
        yield FilePiece(name, len(batch.data), tell(), _csv_reader(batch, wanted))


def is_parquet(path: Path) -> bool:
    return path.suffix == PARQUET


def is_compressed(path: Path) -> bool:
    return path.suffix in COMPRESSION


def text_stream(path: Path, file: BufferedReader) -> Stream:
    """Open the text of a file, decompressed if needed."""
    if not is_compressed(path):
        return file
    stream: Stream = pa.CompressedInputStream(file, COMPRESSION[path.suffix])
    return stream


def _csv_reader(batch: Batch, wanted: Wanted) -> Callable[[], TextRows]:
    def read() -> TextRows:
        found = read_batch(batch, wanted.texts, wanted.numbers, wanted.later)
        return TextRows(
            batch.file,
            found.table,
            lambda rows: batch.lines(found.starts[rows]),
            found.damaged,
            found.repaired,
            found.numbers,
            found.later,
            lambda lines: records_of_batch(batch, found.starts, found.damaged.lines, lines),
        )

    return read


def _parquet_pieces(path: Path, wanted: Wanted) -> Iterator[FilePiece]:
    columns, name = list(wanted.columns), shown_path(path)
    require_columns(column_names(path), columns, name, wanted.table)
    for rows in typed_rows(path, columns):
        reader = typed_reader(name, rows.rows, rows.first, wanted)
        yield FilePiece(name, rows.rows.nbytes, rows.position, reader)


@dataclass(frozen=True)
class TypedRows:
    """Some rows of a Parquet file; the first is row number `first`, counted from 1."""

    rows: pa.Table
    first: int
    position: int  # end offset in the file


def typed_rows(path: Path, columns: list[str] | None) -> Iterator[TypedRows]:
    """Yield the rows of a Parquet file in groups; `columns` None means all columns.

    For a file without rows, yield one empty group, as for a CSV file with only a header.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        done, total, size = 0, file.metadata.num_rows, path.stat().st_size
        if not total:
            nothing = file.schema_arrow.empty_table()
            yield TypedRows(nothing if columns is None else nothing.select(columns), 1, size)
        for batch in file.iter_batches(_PARQUET_ROWS, columns=columns):
            rows, first = pa.table(batch), done + 1
            done += batch.num_rows
            yield TypedRows(rows.select(columns) if columns else rows, first, size * done // total)


def typed_reader(file: str, rows: pa.Table, first: int, wanted: Wanted) -> Callable[[], TextRows]:
    """Return a function that reads rows of typed columns as text."""

    def read() -> TextRows:
        texts = texts_of(rows, file)
        every = np.arange(rows.num_rows)
        numbers = tuple(  # the SQL converts every text
            Numbers(pa.nulls(rows.num_rows, one.type), every, texts[one.column])
            for one in wanted.numbers
        )
        shown = {name: texts[name] for name in [*wanted.texts, *wanted.later]}
        if not shown:  # keep the row count even when no column is wanted
            shown[""] = pa.nulls(rows.num_rows, pa.string())
        return TextRows(
            file,
            pa.table(shown),
            lambda numbers: numbers + first,
            numbers=numbers,
            records=lambda lines: records_of_rows(texts, lines - first),
        )

    return read


def require_columns(present: Sequence[str], wanted: Sequence[str], file: str, table: str) -> None:
    """Raise DataError unless every wanted column is present exactly once."""
    if wanted and not set(wanted) <= set(present):
        require_commas(present, file)
    missing = [name for name in wanted if name not in present]
    if missing:
        shown = ", ".join(present[:12]) + (", …" if len(present) > 12 else "")
        raise DataError(
            f"{file}: no column {missing[0]!r}, which table {table} needs; "
            f"its columns are: {shown[:300]}"
        )
    doubled = [name for name in wanted if list(present).count(name) > 1]
    if doubled:
        raise DataError(f"{file}: two columns are called {doubled[0]!r}; rename one of them")


def require_commas(present: Sequence[str], file: str) -> None:
    """Raise DataError if the header is one name that contains another separator."""
    if len(present) == 1 and any(mark in present[0] for mark in ";\t|"):
        raise DataError(f"{file}: its fields are not separated by commas; convert it first")
