"""Cuts an Arrow IPC stream into small streams of one record batch, without holding all of it.

    stream  = message*, then FFFFFFFF 00000000 or nothing
    message = FFFFFFFF, length of the metadata (4 bytes), metadata, body of the length it states

A small stream is the schema, the dictionaries so far, and one batch. `streams.read_rows` reads it,
with all its checks. A message that is too large is refused before it is read.
"""

import struct
from collections.abc import Callable, Iterator

from caudal.errors import FormatError
from caudal.formats.stream_heads import message_head
from caudal.formats.streams import TooLargeError

Take = Callable[[int], bytes]  # returns the next n bytes of a stream; fewer at its end

_CONTINUES = b"\xff\xff\xff\xff"
_SCHEMA, _DICTIONARY, _RECORDS = 1, 2, 3


def cut(take: Take, key: str, most: int) -> Iterator[bytes]:
    """Yield every record batch as its own stream; only the schema if there is no record batch."""
    common, count = b"", 0
    for kind, message in _messages(take, key, most):
        if kind == _RECORDS:
            yield common + message
            count += 1
            continue
        common += message
        if len(common) > most:
            raise TooLargeError(f"{key} has dictionaries of more than {most} bytes")
    if not count:
        yield common


def _messages(take: Take, key: str, most: int) -> Iterator[tuple[int, bytes]]:
    while prefix := take(8):
        if len(prefix) < 8 or prefix[:4] != _CONTINUES:
            raise FormatError(f"{key} is damaged: no message begins where one should")
        length = int.from_bytes(prefix[4:], "little")
        if length == 0:
            return
        metadata = _all(take, length, key, most)
        try:
            kind, size = message_head(metadata)
        except (struct.error, ValueError) as error:
            raise FormatError(f"{key} is damaged: a message's head makes no sense") from error
        if kind not in (_SCHEMA, _DICTIONARY, _RECORDS):
            raise FormatError(f"{key} is damaged: a message of an unknown kind")
        yield kind, prefix + metadata + _all(take, size, key, most)


def _all(take: Take, size: int, key: str, most: int) -> bytes:
    if size > most:
        raise TooLargeError(f"{key} has a message of {size} bytes: at most {most} are taken")
    data = take(size)
    if len(data) < size:
        raise FormatError(f"{key} is damaged: it ends within a message")
    return data
