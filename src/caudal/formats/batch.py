"""A batch, as the client sends it and the store keeps it: whole records of one file.

    object = head body          head: frame.py, magic "CAUDALB1", index: class Batch
    body   = the records, or the records compressed with zstd
    records = the bytes of whole CSV records, as they are in the file; or, for a file of typed rows
              (Parquet), some of its rows as one Arrow IPC stream

docs/formats/batch.md has an example.
"""

from collections.abc import Iterator
from typing import NotRequired, TypedDict

import msgspec
import pyarrow as pa

from caudal.errors import FormatError
from caudal.formats import frame
from caudal.formats.digest import Digesting, digest
from caudal.formats.frame import Count
from caudal.formats.stream_heads import most_unpacked

MAGIC = b"CAUDALB1"
MOST_BYTES = 256 << 20  # records of one batch, unpacked: a worker must hold them in memory
MOST_INDEX_BYTES = 4 << 20  # ten thousand columns with long names take 1 MiB
_PIECE_BYTES = 1 << 20  # chunk size when a digest is checked without keeping the data
_LEAST_SAVING = 0.9  # store compressed only if the size shrinks below this fraction


class BatchHeader(msgspec.Struct, frozen=True):
    """Everything that is needed to read the records without the file."""

    table: str
    number: Count
    file: str
    columns: tuple[str, ...]  # the file's header
    first_line: Count
    offset: Count  # of the first record in the file
    newlines: Count  # for clients that follow a growing file; readers do not use it
    bytes: Count  # of the records, uncompressed
    digest: str  # of the records, uncompressed
    codec: str = "none"  # or "zstd"
    records: str = "csv"  # or "arrow"; then `first_line` and `offset` count rows
    source: Count | msgspec.UnsetType = msgspec.UNSET  # of a load: the place of its source

    def holds_the_same(self, other: "BatchHeader") -> bool:
        """Return whether both hold the same records, read the same way. The file may differ."""
        mine = self.digest, self.bytes, self.columns, self.first_line, self.source
        its = other.digest, other.bytes, other.columns, other.first_line, other.source
        return mine == its


class BatchContent(TypedDict):
    """The description of some records and their origin: the arguments of `encode`."""

    columns: tuple[str, ...]
    first_line: int
    offset: int
    newlines: int
    data: bytes | memoryview
    records: NotRequired[str]


def encode(
    *,
    table: str,
    number: int,
    file: str,
    columns: tuple[str, ...],
    first_line: int,
    offset: int,
    newlines: int,
    data: bytes | memoryview,
    records: str = "csv",
    compress: bool = True,
    source: int | msgspec.UnsetType = msgspec.UNSET,
    bare: bool = False,
) -> bytes:
    """Return a batch as bytes, compressed if that is requested and saves enough. With `bare`,
    return only its head, for a reader that takes the records from the file."""
    pack = compress and data and not bare
    packed = pa.compress(data, codec="zstd", asbytes=True) if pack else data
    pays = len(packed) < _LEAST_SAVING * len(data)
    index = BatchHeader(
        table=table,
        number=number,
        file=file,
        columns=columns,
        first_line=first_line,
        offset=offset,
        newlines=newlines,
        bytes=len(data),
        digest=digest(data),
        codec="zstd" if pays else "none",
        records=records,
        source=source,
    )
    head = frame.encode(MAGIC, index)
    return head if bare else b"".join((head, packed if pays else data))


def describe(read: frame.Read, key: str) -> BatchHeader:
    """Return the header of a batch without reading its records."""
    return _decoded(read, key)[0]


def decode(data: bytes, key: str) -> tuple[BatchHeader, bytes]:
    """Return the header and the records of a batch, checked against their digest."""
    index, records = view(data, key)
    return index, bytes(records)


def view(
    data: bytes, key: str, body: memoryview | None = None
) -> tuple[BatchHeader, bytes | memoryview]:
    """Do the same as `decode`, but do not copy records that are not compressed. With `body`, only
    the head is in `data`."""
    index, begin = _decoded(frame.of_bytes(data), key)
    records = _unpacked(memoryview(data)[begin:] if body is None else body, index, key)
    if len(records) != index.bytes or digest(records) != index.digest:
        raise FormatError(f"{key} is damaged: its records do not match their digest")
    return index, records


def check(data: bytes, key: str) -> BatchHeader:
    """Check the records of a batch against their digest without keeping them; return its header."""
    index, body = _decoded(frame.of_bytes(data), key)
    found, size = Digesting(), 0
    for piece in _pieces(memoryview(data)[body:], index, key):
        found.update(piece)
        size += len(piece)
        if size > index.bytes:
            break  # it holds more than it declares: no need to unpack the rest
    if size != index.bytes or found.value != index.digest:
        raise FormatError(f"{key} is damaged: its records do not match their digest")
    return index


def _decoded(read: frame.Read, key: str) -> tuple[BatchHeader, int]:
    """Return the index and the offset of the body.

    A batch that declares too many bytes is refused here, before anything is unpacked. Any other
    batch is later unpacked into exactly as many bytes as it declares.
    """
    index, body = frame.decode(read, MAGIC, BatchHeader, key, MOST_INDEX_BYTES)
    if index.bytes > MOST_BYTES:
        raise FormatError(
            f"{key} holds {index.bytes} bytes of records: at most {MOST_BYTES} are read; "
            "cut smaller batches"
        )
    return index, body


def _pieces(body: memoryview, index: BatchHeader, key: str) -> Iterator[bytes | memoryview]:
    _check_codec(index, key)
    if index.codec == "none":
        yield body
        return
    try:
        with pa.input_stream(pa.py_buffer(body), compression="zstd") as stream:
            while piece := stream.read(_PIECE_BYTES):
                yield piece
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{key} is damaged: {error}") from error


def _unpacked(body: memoryview, index: BatchHeader, key: str) -> bytes | memoryview:
    _check_codec(index, key)
    if index.codec == "none":
        return body
    if index.bytes > most_unpacked(len(body)):
        raise FormatError(f"{key} is damaged: it cannot unpack to {index.bytes} bytes")
    try:
        unpacked: bytes = pa.decompress(body, index.bytes, codec="zstd", asbytes=True)
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{key} is damaged: {error}") from error
    return unpacked


def _check_codec(index: BatchHeader, key: str) -> None:
    if index.codec not in ("none", "zstd"):
        raise FormatError(
            f"{key} is compressed with {index.codec!r}, which this Caudal cannot read"
        )
    if index.records not in ("csv", "arrow"):
        raise FormatError(f"{key} holds {index.records!r}, which this Caudal does not know")
