"""Pieces of a table's files, each readable as columns of text.

Cutting a file is sequential and cheap. Reading a piece is expensive, and any thread may do it.
"""

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.errors import DataError
from caudal.files.cleaning import Wanted
from caudal.files.inputs import InputFile
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
    TextColumns,
    cut_batches,
    read_batch,
)
from caudal.kernels.csv.records import REASONS

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


def pieces(file: Path | InputFile, wanted: Wanted, *, batch_bytes: int) -> Iterator[FilePiece]:
    """Yield the pieces of one file with the wanted columns."""
    source = InputFile.of(file)
    if source.kind == "text":
        return _csv_pieces(source, wanted, batch_bytes)
    return _typed_pieces(source, wanted)


def column_names(file: Path | InputFile) -> tuple[str, ...]:
    """Return the column names of a file in file order."""
    source = InputFile.of(file)
    if source.kind != "text":
        from caudal.files.typed import typed_names

        return typed_names(source)
    with contextlib.closing(cut_records(source, _HEADER_BYTES)) as batches:
        return next(batches)[0].header.names


def cut_records(
    file: InputFile, batch_bytes: int, wanted: Sequence[str] = (), *, passing: bool = False
) -> Generator[tuple[Batch, int]]:
    """Yield batches of the records of a text file, each with how far into the file it reaches. With
    `passing`, their data is gone when the next one is asked for."""
    with file.opened() as opened:
        for batch in cut_batches(
            file.stream(opened),
            file.name,
            batch_bytes=batch_bytes,
            wanted=wanted,
            first_line=file.first_line,
            passing=passing,
        ):
            yield batch, opened.tell()


def _csv_pieces(file: InputFile, wanted: Wanted, batch_bytes: int) -> Iterator[FilePiece]:
    with file.opened() as opened:
        yield from csv_pieces(
            file.stream(opened), file.name, wanted, batch_bytes, opened.tell, file.first_line
        )


def csv_pieces(
    stream: Stream,
    name: str,
    wanted: Wanted,
    batch_bytes: int,
    tell: Callable[[], int],
    first_line: int = 1,
) -> Iterator[FilePiece]:
    """Yield the pieces of CSV text; `tell` gives the position that a progress display shows."""
    columns = wanted.columns
    batches = cut_batches(
        stream, name, batch_bytes=batch_bytes, wanted=columns, first_line=first_line
    )
    for batch in batches:
        if batch.number == 0:
            require_columns(batch.header.names, columns, name, wanted.table)
        yield FilePiece(name, len(batch.data), tell(), _csv_reader(batch, wanted))


def _csv_reader(batch: Batch, wanted: Wanted) -> Callable[[], TextRows]:
    def read() -> TextRows:
        found = read_batch(batch, wanted.texts, number_columns(wanted), wanted.later)
        return text_rows(batch, found)

    return read


def text_rows(batch: Batch, found: TextColumns) -> TextRows:
    """Return the columns that were read of a batch. Its records are read again without them."""
    return TextRows(
        batch.file,
        found.table,
        lambda rows: batch.lines(found.starts[rows]),
        found.damaged,
        found.repaired,
        found.numbers,
        found.later,
        partial(records_of_batch, batch, found.starts, found.damaged.lines),
    )


def number_columns(wanted: Wanted) -> tuple[NumberColumn, ...]:
    """Return the columns that are wanted as numbers."""
    return tuple(NumberColumn(*one) for one in wanted.numbers)


def _typed_pieces(file: InputFile, wanted: Wanted) -> Iterator[FilePiece]:
    from caudal.files.typed import typed_names, typed_rows

    columns = list(wanted.columns)
    require_columns(typed_names(file), columns, file.name, wanted.table)
    for rows in typed_rows(file, columns):
        reader = typed_reader(file.name, rows.rows, rows.first, wanted)
        yield FilePiece(file.name, rows.rows.nbytes, rows.position, reader)


def typed_reader(file: str, rows: pa.Table, first: int, wanted: Wanted) -> Callable[[], TextRows]:
    """Return a function that reads rows of typed columns as text."""
    import pyarrow.compute as pc

    from caudal.files.typed import sound_rows

    def read() -> TextRows:
        sound, damage = sound_rows(rows)
        texts = texts_of(sound, file)
        every = np.arange(sound.num_rows)
        numbers = tuple(  # the SQL converts every text
            Numbers(pa.nulls(sound.num_rows, one.type), every, texts[one.column])
            for one in number_columns(wanted)
        )
        shown = {name: texts[name] for name in [*wanted.texts, *wanted.later]}
        if not shown:  # keep the row count even when no column is wanted
            shown[""] = pa.nulls(sound.num_rows, pa.string())
        places = first + np.flatnonzero(pc.is_null(damage).to_numpy(zero_copy_only=False))
        return TextRows(
            file,
            pa.table(shown),
            lambda numbers: places[numbers],
            _damaged(damage, first),
            numbers=numbers,
            records=lambda lines: _records_at(texts, places, lines),
        )

    return read


def _records_at(
    texts: Mapping[str, pa.ChunkedArray], places: NDArray[np.int64], lines: NDArray[np.int64]
) -> pa.Array:
    """Return the sound rows on these lines; null for the others."""
    if not len(places):
        return no_records(lines)
    at = np.minimum(np.searchsorted(places, lines), len(places) - 1)
    found = records_of_rows(texts, at).to_pylist()
    is_there = (places[at] == lines).tolist()
    return pa.array([one if there else None for one, there in zip(found, is_there, strict=True)],
                    pa.string())  # fmt: skip


def _damaged(damage: pa.Array, first: int) -> DamagedLines:
    """Return the damaged rows; a client may have sent any number as a reason."""
    verdicts = damage.fill_null(0).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(np.isin(verdicts, list(REASONS)))
    return DamagedLines(first + rows, verdicts[rows])


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
        raise DataError(
            f"{file}: it is not certain what separates its fields: say it with --delimiter, or as "
            "`delimiter` in app.toml"
        )
