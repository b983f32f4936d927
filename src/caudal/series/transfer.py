"""The bytes of an object, checked against a digest: small ones in memory, big ones in a file."""

import contextlib
import mmap
import tempfile
from collections.abc import Iterator
from pathlib import Path

from caudal.errors import NotFoundError
from caudal.formats.digest import digest
from caudal.store.port import Store

BIG_FILE_BYTES = 64 << 20
_PIECE_BYTES = 8 << 20


@contextlib.contextmanager
def checked_bytes(
    store: Store, key: str, size: int, expected: str, big_file_bytes: int = BIG_FILE_BYTES
) -> Iterator[bytes | Path | None]:
    """Yield the object under a key if it has this digest; None if it is missing or different.

    `size` only decides how it is fetched. A local file is removed at the end of the context.
    """
    with contextlib.ExitStack() as stack:
        data: bytes | Path | None
        try:
            if size <= big_file_bytes:
                data = store.read(key)
                found = digest(data)
            else:
                local = stack.enter_context(tempfile.NamedTemporaryFile(prefix="caudal-series-"))
                data = Path(local.name)
                found = _fetch(store, key, data)
        except NotFoundError:
            data, found = None, expected
        yield data if found == expected else None


def _fetch(store: Store, key: str, path: Path) -> str:
    """Copy an object to a local file piece by piece. Return its digest."""
    offset = 0
    with path.open("wb") as file:
        while piece := store.read(key, offset, _PIECE_BYTES):
            file.write(piece)
            offset += len(piece)
    if not offset:  # an empty file cannot be mapped
        return digest(b"")
    with path.open("rb") as whole, mmap.mmap(whole.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return digest(memoryview(mapped))
