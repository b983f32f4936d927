"""The content that a caller stores: bytes, or a local file that is read in pieces."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from caudal.errors import StoreError

PIECE_BYTES = 1 << 20


@contextmanager
def opened(data: bytes | Path) -> Iterator[BinaryIO]:
    """Open the content as a stream, at its beginning."""
    if isinstance(data, bytes):
        yield BytesIO(data)
        return
    try:
        source = data.open("rb", buffering=0)
    except OSError as error:
        raise StoreError(f"cannot read the local file {data}: {error.strerror}") from error
    with source:
        yield source


def size(data: bytes | Path) -> int:
    """Return the size of the content in bytes."""
    if isinstance(data, bytes):
        return len(data)
    try:
        return data.stat().st_size
    except OSError as error:
        raise StoreError(f"cannot read the local file {data}: {error.strerror}") from error


def same(data: bytes | Path, stored: Iterable[bytes]) -> bool:
    """Return whether the stored pieces, joined in order, equal this content."""
    with opened(data) as source:
        for piece in stored:
            if _read(source, len(piece)) != piece:
                return False
        return not source.read(1)


def _read(source: BinaryIO, count: int) -> bytes:
    """Read exactly `count` bytes, fewer only at the end of the file.

    One read(2) may return less, so it is repeated.
    """
    piece = source.read(count)
    while len(piece) < count and (more := source.read(count - len(piece))):
        piece += more
    return piece
