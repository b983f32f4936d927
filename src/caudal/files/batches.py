"""Numbered batches of a table's files, as the client sends them.

The files are found and cut exactly as by the local engines. Text in any dialect is sent as CSV
(canonical.py), so a cluster needs to know of none. Rows of Parquet, Excel and JSON are sent typed;
the reader of a batch converts them to text.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from io import BytesIO
from pathlib import Path

import pyarrow as pa
from msgspec import UNSET, UnsetType

from caudal.files.inputs import InputFile
from caudal.files.pieces import cut_records
from caudal.formats import batch as batch_format
from caudal.kernels.csv import Found, cut_batches


@dataclass(frozen=True)
class CutNote:
    """What cutting a batch told: how far into all files it reaches, in bytes as they lie on the
    disk, and its records, if it had to be scanned."""

    reached: int
    found: Found | None = None


class Packing(Enum):
    """Whose records are compressed."""

    ALL = "all"
    UNLESS_PLAIN = "all but those of plain CSV files"
    NONE = "none"

    def packs(self, file: InputFile) -> bool:
        return self is Packing.ALL or (self is Packing.UNLESS_PLAIN and not file.is_plain)


def cut_files(
    table: str,
    files: Iterable[Path | InputFile],
    batch_bytes: int,
    *,
    columns: Collection[str] | None = None,
    packing: Packing = Packing.ALL,
    scanned: Sequence[str] = (),
    noted: Callable[[CutNote], None] = lambda _: None,
    bare: Collection[str] = (),
) -> Iterator[bytes]:
    """Yield the batches of a table, numbered from 0 across all its files.

    `columns` names those that are wanted of typed rows; None: all. `noted` is called for each batch
    before it is given; if a batch must be scanned to be cut, the columns `scanned` are found.
    `bare` names the files of whose batches only the heads are given.
    """
    for pack in cut_unpacked(
        table,
        files,
        batch_bytes,
        columns=columns,
        packing=packing,
        scanned=scanned,
        noted=noted,
        bare=bare,
    ):
        yield pack()


def cut_unpacked(
    table: str,
    files: Iterable[Path | InputFile],
    batch_bytes: int,
    *,
    columns: Collection[str] | None = None,
    packing: Packing = Packing.ALL,
    scanned: Sequence[str] = (),
    noted: Callable[[CutNote], None] = lambda _: None,
    first: int = 0,
    source: int | UnsetType = UNSET,
    bare: Collection[str] = (),
) -> Iterator[Callable[[], bytes]]:
    """The same, each batch still to be packed, by whichever thread sends it.

    Numbers begin with `first`; `source` is the place of the files among those of a load. A batch of
    a file in `bare` is packed before the next one is asked for, or never.
    """
    number, before = first, 0
    for file in map(InputFile.of, files):
        is_text, is_bare = file.kind == "text", file.name in bare
        cut = _records(file, batch_bytes, scanned, is_bare) if is_text else _typed(file, columns)
        packs = packing.packs(file)
        for fields, note in cut:
            noted(replace(note, reached=before + note.reached))
            yield partial(
                batch_format.encode,
                table=table,
                number=number,
                file=file.name,
                compress=packs,
                source=source,
                bare=is_bare,
                **fields,
            )
            number += 1
        before += file.size


def warm_up() -> None:
    """Load the cutting code in advance. It takes 0.25 s, so call it while waiting for something."""
    for _ in cut_batches(BytesIO(b'a\n"b"\n"c"\n'), "nothing", batch_bytes=8):
        pass


_Content = tuple[batch_format.BatchContent, CutNote]  # which counts from the file's beginning


def _records(
    file: InputFile, batch_bytes: int, wanted: Sequence[str], is_bare: bool
) -> Iterator[_Content]:
    for cut, position in cut_records(file, batch_bytes, wanted, passing=is_bare):
        content: batch_format.BatchContent = {
            "columns": cut.header.names,
            "first_line": cut.first_line,
            "offset": cut.offset,
            "newlines": cut.newlines,
            "data": cut.data.data,
        }
        yield content, CutNote(position, cut.found)


def _typed(file: InputFile, columns: Collection[str] | None) -> Iterator[_Content]:
    """Rows as Arrow streams, not compressed by Arrow: so the same rows give the same bytes."""
    from caudal.files.typed import typed_names, typed_rows

    wanted = [name for name in typed_names(file) if columns is None or name in columns]
    for rows in typed_rows(file, wanted):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.rows.schema) as writer:
            writer.write_table(rows.rows)
        content: batch_format.BatchContent = {
            "columns": tuple(rows.rows.column_names),
            "first_line": rows.first,
            "offset": rows.first - 1,
            "newlines": 0,
            "data": memoryview(sink.getvalue()),
            "records": "arrow",
        }
        yield content, CutNote(rows.position)
