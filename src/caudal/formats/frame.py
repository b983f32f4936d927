"""The head of all binary objects: the kind of the object, the number of its format, and an index.

    head  = magic index-length index-digest index
    magic = 7 letters that name the kind of object, and the number of its format
    index-length = 4 bytes, little-endian
    index-digest = 32 hexadecimal characters, of the index
    index = JSON

The object's body, if it has one, follows the head. docs/formats/README.md describes the same.
"""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec

from caudal.decoding import decode_json
from caudal.errors import FormatError
from caudal.formats.digest import digest

_MAGIC_BYTES = 8
_LENGTH_BYTES = 4
_DIGEST_BYTES = 32
HEAD_BYTES = _MAGIC_BYTES + _LENGTH_BYTES + _DIGEST_BYTES

NAMES = {
    b"CAUDALB": "a batch",
    b"CAUDALM": "a mapped object",
    b"CAUDALG": "a merged object",
    b"CAUDALF": "a fold's output",
    b"CAUDALR": "a result",
}

MOST_INDEX_BYTES = (
    256 << 20
)  # a merged object of many batches, scans and partitions has the largest index

# A number, size or offset in an index. The bound keeps sums of them within 64 bits.
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]

# A moment in milliseconds since 1970, up to the last year that Python knows.
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]

# Why a query failed, stored instead of its rows. The writer cuts it to this length.
MOST_REASON = 2_000
Reason = Annotated[str, msgspec.Meta(max_length=MOST_REASON)]

# Errors that msgspec raises for bytes that are not JSON of the expected type, or nested too deeply.
JSON_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)

Read = Callable[[int, int], bytes]  # offset, length -> bytes: a ranged read of one object
Index = TypeVar("Index")


def encode(magic: bytes, index: Any) -> bytes:
    """Return the head of an object."""
    text = msgspec.json.encode(index)
    return magic + len(text).to_bytes(_LENGTH_BYTES, "little") + digest(text).encode() + text


def decode(
    read: Read, magic: bytes, kind: type[Index], key: str, most: int = MOST_INDEX_BYTES
) -> tuple[Index, int]:
    """Return an object's index and the offset of its body.

    Raise FormatError if the object is of another kind, or the index is longer than `most` bytes.
    """
    head = read_head(read, magic, key, most)
    return decode_head(head, kind, key), len(head)


def read_head(read: Read, magic: bytes, key: str, most: int = MOST_INDEX_BYTES) -> bytes:
    """Return the head of an object as it is stored, checked against its digest."""
    head = read(0, HEAD_BYTES)
    check_magic(head, magic, key)
    length = _length(head)
    if length > most:
        raise FormatError(f"{key} has an index of {length} bytes: at most {most} are read")
    text = read(HEAD_BYTES, length)
    if len(text) != length or digest(text).encode() != head[-_DIGEST_BYTES:]:
        raise FormatError(f"{key} is damaged: its index does not match its digest")
    return head + text


def decode_head(head: bytes, kind: type[Index], key: str) -> Index:
    """Return the index of a head that was checked."""
    try:
        return decode_json(head[HEAD_BYTES:], kind)
    except JSON_ERRORS as error:
        raise FormatError(f"{key}: {error}") from error


def body_offset(head: bytes) -> int:
    """Return the offset of the body that an object declares. Nothing is checked yet."""
    return HEAD_BYTES + _length(head)


def _length(head: bytes) -> int:
    return int.from_bytes(head[_MAGIC_BYTES : _MAGIC_BYTES + _LENGTH_BYTES], "little")


def check_magic(head: bytes, magic: bytes, key: str) -> None:
    """Raise FormatError if an object has another kind, or a format that this Caudal cannot read."""
    if head[: _MAGIC_BYTES - 1] != magic[:-1]:
        raise FormatError(f"{key} is not {NAMES[magic[:-1]]}")
    if head[:_MAGIC_BYTES] != magic:
        number = head[_MAGIC_BYTES - 1 : _MAGIC_BYTES].decode("ascii", "replace")
        raise FormatError(f"{key} has format {number}, this Caudal reads {chr(magic[-1])}")


def of_bytes(data: bytes) -> Read:
    """Return a range reader for an object in memory."""
    return lambda offset, length: data[offset : offset + length]
