"""A batch as the client sends it and the store keeps it: whole records of one file.

    object = head body          head: frame.py, magic "CAUDALB1", index: class Batch
    body   = the records' bytes, as they are in the file, or compressed with zstd

docs/formats/batch.md has an example.
"""

import msgspec
import pyarrow as pa

from caudal.errors import FormatError
from caudal.formats import frame
from caudal.formats.digest import digest

MAGIC = b"CAUDALB1"
_LEAST_SAVING = 0.9  # compressed only if that leaves less than this part of the bytes


class Batch(msgspec.Struct, frozen=True):
    """What anyone needs to read the records alone."""

    table: str
    number: int
    file: str
    columns: tuple[str, ...]  # the file's header
    first_line: int
    offset: int  # in the file
    newlines: int
    bytes: int  # of the records, uncompressed
    digest: str  # of the records, uncompressed
    codec: str = "none"  # or "zstd"

    def holds_the_same(self, other: "Batch") -> bool:
        """The same records, read the same way; the file may have moved."""
        mine = self.digest, self.bytes, self.columns, self.first_line
        return mine == (other.digest, other.bytes, other.columns, other.first_line)


def encode(
    *,
    table: str,
    number: int,
    file: str,
    columns: tuple[str, ...],
    first_line: int,
    offset: int,
    newlines: int,
    data: bytes,
) -> bytes:
    """A batch as bytes."""
    packed = pa.compress(data, codec="zstd", asbytes=True) if data else b""
    pays = len(packed) < _LEAST_SAVING * len(data)
    index = Batch(
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
    )
    return frame.encode(MAGIC, index) + (packed if pays else data)


def describe(read: frame.Read, key: str) -> Batch:
    """What a batch says about itself, without reading its records."""
    return frame.decode(read, MAGIC, Batch, key)[0]


def decode(data: bytes, key: str) -> tuple[Batch, bytes]:
    """A batch and its records, checked against their digest."""
    index, body = frame.decode(frame.of_bytes(data), MAGIC, Batch, key)
    records = _unpacked(data[body:], index, key)
    if len(records) != index.bytes or digest(records) != index.digest:
        raise FormatError(f"{key} is damaged: its records do not match their digest")
    return index, records


def _unpacked(body: bytes, index: Batch, key: str) -> bytes:
    if index.codec == "none":
        return body
    if index.codec != "zstd":
        raise FormatError(f"{key} is compressed with {index.codec!r}, which this Caudal lacks")
    try:
        unpacked: bytes = pa.decompress(body, index.bytes, codec="zstd", asbytes=True)
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{key} is damaged: {error}") from error
    return unpacked
