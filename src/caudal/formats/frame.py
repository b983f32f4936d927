"""The head that all binary objects share: what it is, of which format, and an index.

    head  = magic index-length index-digest index
    magic = 7 letters that say what the object is, and the number of its format
    index-length = 4 bytes, little-endian
    index-digest = 32 hexadecimal characters, of the index
    index = JSON

Behind the head lies the object's body, if it has one. docs/formats/README.md says the same.
"""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec

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
)  # a merged object of many batches, scans and partitions has the largest

# A number, size or place in an index: what a reader computes with fits 64 bits, whatever it adds.
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]

# Why a query failed, in the place of its rows. Whoever writes one cuts it.
MOST_REASON = 2_000
Reason = Annotated[str, msgspec.Meta(max_length=MOST_REASON)]

# What msgspec raises for bytes that are no JSON of the wanted kind, or nested without end.
JSON_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)

Read = Callable[[int, int], bytes]  # offset, length -> bytes: a ranged read of one object
Index = TypeVar("Index")


def encode(magic: bytes, index: Any) -> bytes:
    """The head of an object."""
    text = msgspec.json.encode(index)
    return magic + len(text).to_bytes(_LENGTH_BYTES, "little") + digest(text).encode() + text


def decode(
    read: Read, magic: bytes, kind: type[Index], key: str, most: int = MOST_INDEX_BYTES
) -> tuple[Index, int]:
    """An object's index, and where its body begins; FormatError if it is something else, or if
    the index is longer than `most` bytes."""
    head = read_head(read, magic, key, most)
    return decode_head(head, kind, key), len(head)


def read_head(read: Read, magic: bytes, key: str, most: int = MOST_INDEX_BYTES) -> bytes:
    """The head of an object as it lies, checked against its digest."""
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
    """The index in a head that was checked."""
    try:
        return msgspec.json.decode(head[HEAD_BYTES:], type=kind)
    except JSON_ERRORS as error:
        raise FormatError(f"{key}: {error}") from error


def body_offset(head: bytes) -> int:
    """Where an object says that its body begins; nothing else of it is believed yet."""
    return HEAD_BYTES + _length(head)


def _length(head: bytes) -> int:
    return int.from_bytes(head[_MAGIC_BYTES : _MAGIC_BYTES + _LENGTH_BYTES], "little")


def check_magic(head: bytes, magic: bytes, key: str) -> None:
    """Is this an object of the expected kind, in the format that this Caudal reads?"""
    if head[: _MAGIC_BYTES - 1] != magic[:-1]:
        raise FormatError(f"{key} is not {NAMES[magic[:-1]]}")
    if head[:_MAGIC_BYTES] != magic:
        number = head[_MAGIC_BYTES - 1 : _MAGIC_BYTES].decode("ascii", "replace")
        raise FormatError(f"{key} has format {number}, this Caudal reads {chr(magic[-1])}")


def of_bytes(data: bytes) -> Read:
    """Ranged reads of an object that is in memory."""
    return lambda offset, length: data[offset : offset + length]
