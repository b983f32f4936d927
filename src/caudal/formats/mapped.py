"""The output of a map task: one object with an index, so that a fold reads only its slices.

    object  = magic index-length index-digest index body
    magic   = "CAUDALM1"                8 bytes; the last is the format's number
    index-length = 4 bytes, little-endian
    index-digest = 32 hexadecimal characters, of the index
    index   = JSON (class Index)
    body    = the slices, at the offsets that the index states, counted from the body's start

A slice is an Arrow IPC stream, its buffers compressed with zstd. A slice without rows takes no
bytes: its schema is that of the stage, stored once. docs/formats/mapped.md has an example.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec
import pyarrow as pa

from caudal.errors import FormatError
from caudal.formats.digest import digest

MAGIC = b"CAUDALM1"
_LENGTH_BYTES = 4
_DIGEST_BYTES = 32
HEAD_BYTES = len(MAGIC) + _LENGTH_BYTES + _DIGEST_BYTES

_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")
REJECTS_SCHEMA = pa.schema([("line", pa.int64()), ("reason", pa.string())])


class Span(msgspec.Struct, frozen=True, array_like=True):
    """Where a stream lies in the body, how many rows it holds, and its digest."""

    offset: int
    length: int
    rows: int
    digest: str


class StageIndex(msgspec.Struct, frozen=True):
    """The slices of one scan, one per partition (or one, when gathered)."""

    empty: Span  # the schema, as a stream without rows
    slices: tuple[Span, ...]


class Index(msgspec.Struct, frozen=True):
    """What a mapped object says about itself."""

    table: str
    batch: int
    file: str  # where the batch was cut from
    rows: int  # sound and clean: those that the scans read
    repaired: int  # rows with bytes that are not UTF-8
    rejects: Span
    stages: dict[str, StageIndex]


Read = Callable[[int, int], bytes]  # offset, length -> bytes: a ranged read of one object


def encode(
    *,
    table: str,
    batch: int,
    file: str,
    rows: int,
    repaired: int,
    rejects: Sequence[tuple[int, str]],
    stages: Mapping[str, Sequence[pa.Table]],
) -> bytes:
    """One map output as bytes. `rejects` holds (line, reason) in the order of the lines."""
    body = bytearray()
    reject_rows = pa.table(
        [[line for line, _ in rejects], [reason for _, reason in rejects]], schema=REJECTS_SCHEMA
    )
    index = Index(
        table=table,
        batch=batch,
        file=file,
        rows=rows,
        repaired=repaired,
        rejects=_append(body, reject_rows),
        stages={name: _append_stage(body, slices) for name, slices in stages.items()},
    )
    text = msgspec.json.encode(index)
    head = MAGIC + len(text).to_bytes(_LENGTH_BYTES, "little") + digest(text).encode()
    return head + text + bytes(body)


def _append_stage(body: bytearray, slices: Sequence[pa.Table]) -> StageIndex:
    empty = _append(body, slices[0].slice(0, 0))
    return StageIndex(
        empty,
        tuple(
            _append(body, rows) if rows.num_rows else Span(len(body), 0, 0, "") for rows in slices
        ),
    )


def _append(body: bytearray, rows: pa.Table) -> Span:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_OPTIONS) as writer:
        writer.write_table(rows)
    data = sink.getvalue()
    span = Span(len(body), data.size, rows.num_rows, digest(memoryview(data)))
    body += memoryview(data)
    return span


class MappedReader:
    """Reads the index at once, and slices by range as they are asked for.

    Every stream is checked against its digest before it is believed.
    """

    def __init__(self, read: Read, key: str) -> None:
        self._read = read
        self._key = key
        head = read(0, HEAD_BYTES)
        if head[: len(MAGIC) - 1] != MAGIC[:-1]:
            raise FormatError(f"{key} is not a mapped object")
        if head[: len(MAGIC)] != MAGIC:
            number = head[len(MAGIC) - 1 : len(MAGIC)].decode("ascii", "replace")
            raise FormatError(f"{key} has format {number}, this Caudal reads {chr(MAGIC[-1])}")
        length = int.from_bytes(head[len(MAGIC) : len(MAGIC) + _LENGTH_BYTES], "little")
        text = read(HEAD_BYTES, length)
        if digest(text).encode() != head[-_DIGEST_BYTES:]:
            raise FormatError(f"{key} is damaged: its index does not match its digest")
        try:
            self.index = msgspec.json.decode(text, type=Index)
        except msgspec.MsgspecError as error:
            raise FormatError(f"{key}: {error}") from error
        self._body = HEAD_BYTES + length

    def slice(self, stage: str, number: int) -> pa.Table:
        """One slice of one scan."""
        found = self.index.stages[stage]
        span = found.slices[number]
        return self._stream(span if span.length else found.empty)

    def rejects(self) -> list[tuple[int, str]]:
        """(line, reason) of every rejected row of the batch."""
        rows = self._stream(self.index.rejects).to_pydict()
        return list(zip(rows["line"], rows["reason"], strict=True))

    def _stream(self, span: Span) -> pa.Table:
        data = self._read(self._body + span.offset, span.length)
        if len(data) != span.length or digest(data) != span.digest:
            raise FormatError(f"{self._key} is damaged: a slice does not match its digest")
        rows = pa.ipc.open_stream(data).read_all()
        if rows.num_rows != span.rows:
            raise FormatError(f"{self._key} is damaged: a slice has {rows.num_rows} rows")
        return rows


def open_bytes(data: bytes, key: str = "the object") -> MappedReader:
    """A reader over an object that is in memory."""
    return MappedReader(lambda offset, length: data[offset : offset + length], key)
