"""The metadata of the messages in an Arrow IPC stream, read before anything is unpacked.

Arrow's library cannot tell whether the buffers of a message are compressed, or how long they are
unpacked. The format contains both. A message's metadata is a flatbuffer:

    table  = i32 distance back to its vtable, then its fields
    vtable = u16 size, u16 size of the table, then for each field u16 its offset in the table, or 0

    Message = version, header type, header, body length, ...
    header  = RecordBatch (length, nodes, buffers, compression, ...) or DictionaryBatch (id, data)

`buffers` lists (offset, length) in the message's body, 16 bytes each. A compressed buffer begins
with its unpacked length, 8 bytes; -1 means that it is not compressed.
https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.errors import FormatError

Pairs = NDArray[np.int64]

_RECORDS, _DICTIONARY = "record batch", "dictionary"
_PREFIX = 8  # the unpacked length before a compressed buffer


@dataclass(frozen=True)
class Head:
    """The head of one message with data. `bytes` is the unpacked size of its buffers."""

    rows: int
    bytes: int
    compressed: bool


def heads_of(stream: pa.Buffer, key: str) -> Iterator[Head]:
    """Yield the heads of all messages with rows or dictionaries. Arrow's errors are not caught."""
    reader = pa.ipc.MessageReader.open_stream(stream)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        if message.type in (_RECORDS, _DICTIONARY):
            try:
                yield _head(message)
            except (struct.error, ValueError, OverflowError) as error:
                raise FormatError(f"{key} is damaged: a message's head makes no sense") from error


def message_head(metadata: bytes) -> tuple[int, int]:
    """Return the number of a message's kind, and the length of its body.

    Raise struct.error or ValueError if the metadata is invalid.
    """
    table = _number("<I", metadata, 0)
    kind, size = _field(metadata, table, 1, "<B"), _field(metadata, table, 3, "<q")
    if size < 0:
        raise ValueError("a negative length")
    return kind, size


def _head(message: pa.Message) -> Head:
    metadata = message.metadata.to_pybytes()
    header = _child(metadata, _number("<I", metadata, 0), 2)
    is_dictionary = message.type == _DICTIONARY
    batch = _child(metadata, header, 1) if is_dictionary else header
    rows = _field(metadata, batch, 0, "<q")
    if rows < 0:
        raise ValueError("a negative number of rows")
    compressed = _place(metadata, batch, 3) is not None
    buffers = _pairs(metadata, batch, 2)
    return Head(
        0 if is_dictionary else rows,
        _unpacked_bytes(buffers, message.body, compressed=compressed),
        compressed,
    )


def _unpacked_bytes(buffers: Pairs, body: pa.Buffer | None, *, compressed: bool) -> int:
    if len(buffers) and (buffers < 0).any():
        raise ValueError("a negative place of a buffer")
    if not compressed:
        return sum(buffers[:, 1].tolist())
    data = memoryview(body) if body is not None else memoryview(b"")
    return sum(_unpacked(data, offset, length) for offset, length in buffers.tolist())


def _unpacked(body: memoryview, offset: int, length: int) -> int:
    if length == 0:
        return 0
    declared: int = struct.unpack_from("<q", body, offset)[0]
    if not -1 <= declared <= most_unpacked(length):
        raise ValueError("an impossible length of a buffer")
    return length - _PREFIX if declared == -1 else declared


def most_unpacked(length: int) -> int:
    """Return to how many bytes `length` bytes can unpack at most.

    A block of zstd takes at least 4 bytes and holds at most 128 KiB. A buffer that declares more
    is forged, and no memory is allocated for it.
    """
    return (length // 4 + 1) << 17


def _pairs(data: bytes, table: int, number: int) -> Pairs:
    """Return a vector of pairs of i64."""
    place = _place(data, table, number)
    if place is None:
        return np.empty((0, 2), np.int64)
    vector = place + _number("<I", data, place)
    count = _number("<I", data, vector)
    return np.frombuffer(data, "<i8", 2 * count, vector + 4).reshape(-1, 2)


def _child(data: bytes, table: int, number: int) -> int:
    """Return the position of the table that a field refers to."""
    place = _place(data, table, number)
    if place is None:
        raise ValueError("a field is missing")
    return place + _number("<I", data, place)


def _field(data: bytes, table: int, number: int, kind: str) -> int:
    place = _place(data, table, number)
    return 0 if place is None else _number(kind, data, place)


def _place(data: bytes, table: int, number: int) -> int | None:
    """Return the position of a field of a table; None if the table lacks it."""
    vtable = table - _number("<i", data, table)
    if vtable < 0:
        raise ValueError("a place before the metadata")
    if 4 + 2 * number >= _number("<H", data, vtable):
        return None
    offset = _number("<H", data, vtable + 4 + 2 * number)
    return table + offset if offset else None


def _number(kind: str, data: bytes, place: int) -> int:
    found: int = struct.unpack_from(kind, data, place)[0]
    return found
