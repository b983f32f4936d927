"""From the files of a table to pieces that can be read as columns of text, one by one.

Cutting a file is sequential and cheap; reading a piece is the work, and any thread may do it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from caudal.errors import DataError
from caudal.kernels.csv import Batch, cut_batches, read_batch

_COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
_PARQUET = ".parquet"
_PARQUET_ROWS = 65_536


@dataclass(frozen=True)
class TextRows:
    """Rows of one file as columns of text, with the way back to their lines."""

    file: str
    table: pa.Table
    lines: Callable[[NDArray[np.int64]], NDArray[np.int64]] = field(repr=False)
    damaged: tuple[tuple[int, str], ...] = ()
    repaired: int = 0


@dataclass(frozen=True)
class Piece:
    """A part of a file, cut but not yet read. `position` is how far into the file it reaches."""

    file: str
    bytes: int
    position: int
    read: Callable[[], TextRows] = field(repr=False)


def find_files(folder: Path, patterns: Sequence[str], table: str) -> list[Path]:
    """The files of a table: names or globs inside the data folder (absolute paths stay).

    `ratings.csv` also finds `ratings.csv.gz`, `ratings.csv.zst` and `ratings.parquet`.
    """
    found: list[Path] = []
    for pattern in patterns:
        stem = pattern.removesuffix(".csv")
        for variant in (pattern, f"{pattern}.gz", f"{pattern}.zst", f"{stem}{_PARQUET}"):
            matches = _match(folder, variant)
            if matches:
                found += matches
                break
        else:
            raise DataError(
                f"table {table}: no file {pattern!r} in {folder}; "
                f"point to it with --data DIR or --file {table}=PATH"
            )
    return found


def _match(folder: Path, pattern: str) -> list[Path]:
    path = folder / pattern
    if path.is_file():
        return [path]
    if any(mark in pattern for mark in "*?[") and not Path(pattern).is_absolute():
        return sorted(match for match in folder.glob(pattern) if match.is_file())
    if Path(pattern).is_absolute() and any(mark in pattern for mark in "*?["):
        root = Path(Path(pattern).anchor)
        return sorted(root.glob(str(Path(pattern).relative_to(root))))
    return []


def pieces(
    path: Path, columns: Sequence[str], table: str, *, batch_bytes: int
) -> Iterator[Piece]:
    """The pieces of one file, holding the given columns."""
    if path.suffix == _PARQUET:
        return _parquet_pieces(path, columns, table)
    return _csv_pieces(path, columns, table, batch_bytes)


def _csv_pieces(
    path: Path, columns: Sequence[str], table: str, batch_bytes: int
) -> Iterator[Piece]:
    checked = False
    try:
        with path.open("rb") as file:
            stream = file
            if path.suffix in _COMPRESSION:
                stream = pa.CompressedInputStream(file, _COMPRESSION[path.suffix])
            for batch in cut_batches(stream.read, str(path), batch_bytes=batch_bytes):
                if not checked:
                    require_columns(batch.header.names, columns, str(path), table)
                    checked = True
                yield Piece(str(path), len(batch.data), file.tell(), _csv_reader(batch, columns))
    except (OSError, pa.ArrowException, EOFError) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def _csv_reader(batch: Batch, columns: Sequence[str]) -> Callable[[], TextRows]:
    def read() -> TextRows:
        found = read_batch(batch, columns)
        return TextRows(
            batch.file,
            found.table,
            lambda rows: batch.lines(found.starts[rows]),
            found.damaged,
            found.repaired,
        )

    return read


def _parquet_pieces(path: Path, columns: Sequence[str], table: str) -> Iterator[Piece]:
    try:
        with pq.ParquetFile(path) as file:
            require_columns(file.schema_arrow.names, columns, str(path), table)
            first = 1
            for batch in file.iter_batches(_PARQUET_ROWS, columns=list(columns)):
                reader = _parquet_reader(str(path), pa.table(batch).select(list(columns)), first)
                first += batch.num_rows
                share = path.stat().st_size * (first - 1) // max(file.metadata.num_rows, 1)
                yield Piece(str(path), batch.nbytes, share, reader)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"cannot read {path} as Parquet: {error}") from error


def _parquet_reader(file: str, rows: pa.Table, first: int) -> Callable[[], TextRows]:
    def read() -> TextRows:
        texts = []
        for name, column in zip(rows.column_names, rows.columns, strict=True):
            try:
                text = column.cast(pa.string())
            except pa.ArrowException as error:
                raise DataError(
                    f"{file}: column {name!r} has type {column.type}, which cannot be read as text"
                ) from error
            texts.append(pc.if_else(pc.equal(text, ""), None, text))
        return TextRows(
            file, pa.table(texts, names=rows.column_names), lambda numbers: numbers + first
        )

    return read


def require_columns(
    present: Sequence[str], wanted: Sequence[str], file: str, table: str
) -> None:
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


