"""The output of a map task: one object with an index, so that a fold reads only its slices.

    object  = magic index-length index-digest index body
    magic   = "CAUDALM2"                8 bytes; the last one is the number of the format
    index-length = 4 bytes, little-endian
    index-digest = 32 hexadecimal characters, of the index
    index   = JSON (class Index)
    body    = the slices, at the offsets that the index states, counted from the body's start

A slice is an Arrow IPC stream whose buffers are compressed with zstd. A slice without rows takes
no bytes: it has the schema of the stage, which is stored once. A failed scan has no slices: the
index says why it failed (ADR 27). docs/formats/mapped.md has an example.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec
import pyarrow as pa

from caudal.errors import FormatError, QueryError
from caudal.formats import frame, streams
from caudal.formats.digest import digest
from caudal.formats.frame import MOST_REASON, Count, Read, Reason
from caudal.formats.loads import LoadedBatch

MAGIC = b"CAUDALM2"
HEAD_BYTES = frame.HEAD_BYTES

# Slices are small: handing them to other threads takes longer than compressing them.
_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
REJECTS_SCHEMA = pa.schema([("line", pa.int64()), ("reason", pa.string()), ("rows", pa.int64())])
RECORDS_SCHEMA = pa.schema([("line", pa.int64()), ("record", pa.string())])


class Rejection(NamedTuple):
    """A rejected row of a batch; or, with line 0, a number of rows whose lines were not kept."""

    line: int
    reason: str
    rows: int = 1


class Span(msgspec.Struct, frozen=True, array_like=True):
    """The position of a stream in the body, its number of rows, and its digest."""

    offset: Count
    length: Count
    rows: Count
    digest: str


class StageIndex(msgspec.Struct, frozen=True):
    """The slices of one scan: one per partition, or a single one if it is gathered."""

    empty: Span  # the schema, as a stream without rows
    slices: Annotated[tuple[Span, ...], msgspec.Meta(min_length=1)]


class Index(msgspec.Struct, frozen=True, omit_defaults=True):
    """The index of a mapped object."""

    table: str
    batch: Count
    file: str  # the file that the batch was cut from
    rows: Count  # clean rows, which the scans read
    repaired: Count  # rows with bytes that are not UTF-8
    rejects: Span
    stages: dict[str, StageIndex]
    source_bytes: Count = 0  # size and digest of the batch, if it was an object of the store
    source_digest: str = ""
    failed: dict[str, Reason] = {}  # by scan: why it has no slices
    loaded: LoadedBatch | None = None  # of a load: the files of the batch
    records: Span | None = None  # the texts of some rejected rows, behind the rejects

    @property
    def reported(self) -> tuple[Span, ...]:
        """The streams that only a report reads. They begin the body."""
        return (self.rejects,) if self.records is None else (self.rejects, self.records)

    def stage(self, name: str, key: str) -> StageIndex:
        """Return the slices of a scan. Raise QueryError if it failed. `key` is for messages."""
        if name in self.failed:
            raise QueryError(self.failed[name])
        if name not in self.stages:
            raise FormatError(f"{key} holds no slices of {name}")
        return self.stages[name]


def encode(
    *,
    table: str,
    batch: int,
    file: str,
    rows: int,
    repaired: int,
    rejects: pa.Table,
    stages: Mapping[str, Sequence[pa.Table]],
    source_bytes: int = 0,
    source_digest: str = "",
    failed: Mapping[str, str] | None = None,
    records: Mapping[int, str] | None = None,
) -> bytes:
    """Return one map output as bytes. `rejects` has REJECTS_SCHEMA, in the order of lines;
    `records` are texts of some of them, by line."""
    body = bytearray()
    rejected = append_stream(body, rejects)
    texts = append_stream(body, _record_rows(records)) if records else None
    index = Index(
        table=table,
        batch=batch,
        file=file,
        rows=rows,
        repaired=repaired,
        rejects=rejected,
        records=texts,
        stages={name: append_stage(body, slices) for name, slices in stages.items()},
        source_bytes=source_bytes,
        source_digest=source_digest,
        failed={name: why[:MOST_REASON] for name, why in (failed or {}).items()},
    )
    return b"".join((frame.encode(MAGIC, index), body))  # one copy, not two


def append_stage(body: bytearray, slices: Sequence[pa.Table]) -> StageIndex:
    """Append the slices of a stage."""
    empty = append_stream(body, slices[0].slice(0, 0))
    return StageIndex(
        empty,
        tuple(
            append_stream(body, rows) if rows.num_rows else Span(len(body), 0, 0, "")
            for rows in slices
        ),
    )


def append_stream(body: bytearray, rows: pa.Table) -> Span:
    """Append rows as one stream."""
    span, data = stream_of(rows, len(body))
    body += memoryview(data)
    return span


def stream_of(rows: pa.Table, offset: int = 0) -> tuple[Span, pa.Buffer]:
    """Return rows as one stream, and its span if it begins at this offset."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_OPTIONS) as writer:
        writer.write_table(rows)
    data = sink.getvalue()
    return Span(offset, data.size, rows.num_rows, digest(memoryview(data))), data


class MappedReader:
    """A reader of a mapped object. It reads the index at once, and slices on demand.

    Every stream is checked against its digest before it is used.
    """

    def __init__(self, read: Read, key: str) -> None:
        self._read = read
        self.key = key
        self.index, self.body = frame.decode(read, MAGIC, Index, key)

    def slice(self, stage: str, number: int) -> pa.Table:
        """Return one slice of one scan."""
        found = self.index.stage(stage, self.key)
        if not 0 <= number < len(found.slices):
            raise FormatError(f"{self.key} holds no slice {number} of {stage}")
        span = found.slices[number]
        return self._stream(span if span.length else found.empty)

    def streams(self, stage: str) -> list[bytes]:
        """Return the stored slices of one scan that hold rows; if none does, its schema."""
        found = self.index.stage(stage, self.key)
        spans = [span for span in found.slices if span.length] or [found.empty]
        read = self._read_once(spans)
        return [read_stream(read, self.body, span, self.key) for span in spans]

    def _read_once(self, spans: Sequence[Span]) -> Read:
        """Return a reader of these spans; if they follow each other, it has read all of them."""
        first, length = spans[0].offset, sum(span.length for span in spans)
        if spans[-1].offset + spans[-1].length - first != length:
            return self._read
        begin = self.body + first
        data = self._read(begin, length)
        return lambda offset, size: data[offset - begin : offset - begin + size]

    def rejects(self) -> list[Rejection]:
        """Return the rejected rows of the batch."""
        return rejections(self._stream(self.index.rejects), self.key)

    def records(self) -> dict[int, str]:
        """Return by line the texts of some rejected rows of the batch."""
        span = self.index.records
        return {} if span is None else record_texts(self._stream(span), self.key)

    def _stream(self, span: Span) -> pa.Table:
        return checked_rows(self._read, self.body, span, self.key)


def rejections(rows: pa.Table, key: str) -> list[Rejection]:
    """Return the rejected rows in a stream. In older streams each counts as one row."""
    if "rows" not in rows.column_names:
        rows = rows.append_column("rows", pa.array([1] * rows.num_rows, pa.int64()))
    if rows.schema != REJECTS_SCHEMA or any(column.null_count for column in rows.columns):
        raise FormatError(f"{key} is damaged: its rejects have other columns than they should")
    return [Rejection(*row) for row in zip(*rows.to_pydict().values(), strict=True)]


def record_texts(rows: pa.Table, key: str) -> dict[int, str]:
    """Return by line the records in a stream."""
    if rows.schema != RECORDS_SCHEMA or any(column.null_count for column in rows.columns):
        raise FormatError(f"{key} is damaged: its records have other columns than they should")
    return dict(zip(*rows.to_pydict().values(), strict=True))


def _record_rows(records: Mapping[int, str]) -> pa.Table:
    return pa.table([list(records), list(records.values())], schema=RECORDS_SCHEMA)


def reject_rows(rejects: Iterable[Rejection]) -> pa.Table:
    """Return rejected rows as a table for `encode`."""
    columns = [list(column) for column in zip(*rejects, strict=True)] or [[], [], []]
    return pa.table(columns, schema=REJECTS_SCHEMA)


def read_stream(read: Read, body: int, span: Span, key: str) -> bytes:
    """Return the checked bytes of one stream of an object whose body begins at `body`."""
    data = read(body + span.offset, span.length)
    if len(data) != span.length or digest(data) != span.digest:
        raise FormatError(f"{key} is damaged: a slice does not match its digest")
    return data


def checked_rows(
    read: Read, body: int, span: Span, key: str, terms: streams.Terms = streams.OWN
) -> pa.Table:
    """Return the checked rows of one stream of an object whose body begins at `body`."""
    data = read_stream(read, body, span, key)
    return streams.read_rows(data, f"a slice of {key}", terms, span.rows)


def read_rows(stream: bytes | memoryview, key: str = "a stream") -> pa.Table:
    """Return the rows of a stream that Caudal wrote; all of it is still checked (`streams.py`)."""
    return streams.read_rows(stream, key)


def open_bytes(data: bytes, key: str = "the object") -> MappedReader:
    """Return a reader for an object in memory."""
    return MappedReader(lambda offset, length: data[offset : offset + length], key)
