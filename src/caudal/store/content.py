"""What a caller stores: bytes, or a local file that is read in pieces."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from caudal.errors import StoreError

PIECE_BYTES = 1 << 20


@contextmanager
def opened(data: bytes | Path) -> Iterator[BinaryIO]:
    """The content as a stream from its beginning."""
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
    """How many bytes it has."""
    if isinstance(data, bytes):
        return len(data)
    try:
        return data.stat().st_size
    except OSError as error:
        raise StoreError(f"cannot read the local file {data}: {error.strerror}") from error


def same(data: bytes | Path, stored: Iterable[bytes]) -> bool:
    """Whether the stored pieces, one after the other, are exactly this content."""
    with opened(data) as source:
        for piece in stored:
            if _read(source, len(piece)) != piece:
                return False
        return not source.read(1)


def _read(source: BinaryIO, count: int) -> bytes:
    """Exactly so many bytes, fewer only at the end; one read of a file may give less."""
    piece = source.read(count)
    while len(piece) < count and (more := source.read(count - len(piece))):
        piece += more
    return piece
