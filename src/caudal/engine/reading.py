"""From the files of a table to pieces that can be read as columns of text, one by one.

Cutting a file is sequential and cheap; reading a piece is the work, and any thread may do it.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from caudal.errors import DataError
from caudal.kernels.csv import Batch, NumberColumn, Numbers, Stream, cut_batches, read_batch

_COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
_PARQUET = ".parquet"
_PARQUET_ROWS = 65_536
_HEADER_BYTES = 65_536


@dataclass(frozen=True)
class TextRows:
    """Rows of one file as columns of text, with the way back to their lines (Parquet: rows)."""

    file: str
    table: pa.Table
    lines: Callable[[NDArray[np.int64]], NDArray[np.int64]] = field(repr=False)
    damaged: tuple[tuple[int, str], ...] = ()
    repaired: int = 0
    numbers: tuple[Numbers, ...] = ()  # as many as were wanted


@dataclass(frozen=True)
class Piece:
    """A part of a file, cut but not yet read. `position` is how far into the file it reaches."""

    file: str
    bytes: int
    position: int
    read: Callable[[], TextRows] = field(repr=False)


def find_files(folder: Path, patterns: Sequence[str], table: str) -> list[Path]:
    """The files of a table, each once: names or globs inside the data folder, or absolute ones.

    `ratings.csv` also finds `ratings.csv.gz`, `ratings.csv.zst` and `ratings.parquet`.
    """
    found = (path for pattern in patterns for path in _find(folder, pattern, table))
    return list(dict.fromkeys(found))


def _find(folder: Path, pattern: str, table: str) -> list[Path]:
    """What the pattern matches, in its first form that matches something."""
    parquet = pattern.removesuffix(".csv") + _PARQUET
    for form in (pattern, *(pattern + suffix for suffix in _COMPRESSION), parquet):
        if matches := _match(folder, form):
            return matches
    where = f"in {folder}" if folder.is_dir() else f"because there is no folder {folder}"
    raise DataError(
        f"table {table}: no file {pattern!r} {where}; "
        f"point to it with --data DIR or --file {table}=PATH"
    )


def _match(folder: Path, pattern: str) -> list[Path]:
    """The file of that very name, else the files that the glob matches, in order."""
    if (exact := folder / pattern).is_file():
        return [exact]
    anchor = Path(pattern).anchor
    glob = Path(pattern).relative_to(anchor)
    return sorted(path for path in (folder / anchor).glob(str(glob)) if path.is_file())


@dataclass(frozen=True)
class Wanted:
    """What to read of a table's files: columns as text, and columns as numbers."""

    table: str
    texts: tuple[str, ...]
    numbers: tuple[NumberColumn, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the files, each once."""
        return tuple(dict.fromkeys([*self.texts, *(one.column for one in self.numbers)]))


def pieces(path: Path, wanted: Wanted, *, batch_bytes: int) -> Iterator[Piece]:
    """The pieces of one file, holding what is wanted."""
    with _one_line_errors(path):
        if path.suffix == _PARQUET:
            yield from _parquet_pieces(path, wanted)
        else:
            yield from _csv_pieces(path, wanted, batch_bytes)


def column_names(path: Path) -> tuple[str, ...]:
    """The names of a file's columns, in the file's order."""
    with _one_line_errors(path):
        if path.suffix == _PARQUET:
            return tuple(pq.read_schema(path).names)
        with path.open("rb") as file:
            batches = cut_batches(_stream(path, file), str(path), batch_bytes=_HEADER_BYTES)
            return next(batches).header.names


@contextlib.contextmanager
def _one_line_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        text = " ".join((reason or str(error)).split())
        raise DataError(f"cannot read {path}: {text}") from error


def _csv_pieces(path: Path, wanted: Wanted, batch_bytes: int) -> Iterator[Piece]:
    columns = wanted.columns
    with path.open("rb") as file:
        stream = _stream(path, file)
        for batch in cut_batches(stream, str(path), batch_bytes=batch_bytes, wanted=columns):
            if batch.number == 0:
                require_columns(batch.header.names, columns, str(path), wanted.table)
            yield Piece(str(path), len(batch.data), file.tell(), _csv_reader(batch, wanted))


def _stream(path: Path, file: BufferedReader) -> Stream:
    """The text of a file that may be compressed."""
    if path.suffix not in _COMPRESSION:
        return file
    stream: Stream = pa.CompressedInputStream(file, _COMPRESSION[path.suffix])
    return stream


def _csv_reader(batch: Batch, wanted: Wanted) -> Callable[[], TextRows]:
    def read() -> TextRows:
        found = read_batch(batch, wanted.texts, wanted.numbers)
        return TextRows(
            batch.file,
            found.table,
            lambda rows: batch.lines(found.starts[rows]),
            found.damaged,
            found.repaired,
            found.numbers,
        )

    return read


def _parquet_pieces(path: Path, wanted: Wanted) -> Iterator[Piece]:
    columns = list(wanted.columns)
    with pq.ParquetFile(path) as file:
        require_columns(file.schema_arrow.names, columns, str(path), wanted.table)
        done, total, size = 0, file.metadata.num_rows, path.stat().st_size
        for batch in file.iter_batches(_PARQUET_ROWS, columns=columns):
            reader = _parquet_reader(str(path), pa.table(batch).select(columns), done + 1, wanted)
            done += batch.num_rows
            yield Piece(str(path), batch.nbytes, size * done // total, reader)


def _parquet_reader(
    file: str, rows: pa.Table, first: int, wanted: Wanted
) -> Callable[[], TextRows]:
    def read() -> TextRows:
        texts = {name: _as_text(rows[name], name, file) for name in rows.column_names}
        every = np.arange(rows.num_rows)
        numbers = tuple(  # every text is left to the conversion in SQL
            Numbers(pa.nulls(rows.num_rows, _number_type(one)), every, texts[one.column])
            for one in wanted.numbers
        )
        shown = {name: texts[name] for name in wanted.texts}
        if not shown:  # rows count even when no column is wanted
            shown[""] = pa.nulls(rows.num_rows, pa.string())
        return TextRows(file, pa.table(shown), lambda numbers: numbers + first, numbers=numbers)

    return read


def _number_type(one: NumberColumn) -> pa.DataType:
    return pa.decimal128(one.precision, one.scale) if one.precision else pa.int64()


def _as_text(column: pa.ChunkedArray, name: str, file: str) -> pa.ChunkedArray:
    """A typed column as a CSV file would hold it; an empty text is null."""
    try:
        text = column.cast(pa.string())
    except pa.ArrowException as error:
        raise DataError(
            f"{file}: column {name!r} has type {column.type}, which cannot be read as text"
        ) from error
    return pc.if_else(pc.equal(text, ""), None, text)


def require_columns(present: Sequence[str], wanted: Sequence[str], file: str, table: str) -> None:
    """Every wanted column is there, and only once."""
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
