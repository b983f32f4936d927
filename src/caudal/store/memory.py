"""A store in memory, for tests and the simulation. It keeps every rule of the port but durability.

It is strict where other stores may be lenient: it refuses a key that is the folder of another key,
so that code tested here also runs on a directory. It simulates no faults: wrap it for that.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from caudal.errors import AlreadyExistsError, NotFoundError, StoreError
from caudal.store import content, keys, walk
from caudal.store.port import PAGE, Entry, Page, Store


class MemoryStore(Store):
    """A store that keeps objects in a dictionary, and their keys in a sorted list."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, str]] = {}
        self._ordered: list[str] = []
        self._writes = 0
        self._lock = Lock()

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        """See the port."""
        keys.check_key(key)
        whole = _whole(data)
        with self._lock:
            if key not in self._objects:
                self._put(key, whole)
            elif self._objects[key][0] != whole:
                raise AlreadyExistsError(f"{key} is taken by another object")

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        """See the port."""
        keys.check_key(key)
        keys.check_range(offset, length)
        with self._lock:
            if key not in self._objects:
                raise NotFoundError(f"there is no object {key}")
            whole, _ = self._objects[key]
        return whole[offset:] if length is None else whole[offset : offset + length]

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        """See the port."""
        keys.check_prefix(prefix)
        with self._lock:
            walked = self._walk(prefix, recursive, after)
            return walk.page(walked, self._describe, limit)

    def delete(self, key: str, *, lasting: bool = True) -> None:
        """See the port."""
        keys.check_key(key)
        with self._lock:
            if self._objects.pop(key, None) is not None:
                del self._ordered[bisect_left(self._ordered, key)]

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        """See the port."""
        keys.check_key(key)
        keys.check_key(key if twin is None else twin)
        whole = _whole(data)
        with self._lock:
            return self._put(key, whole)

    def _put(self, key: str, whole: bytes) -> str:
        if key not in self._objects:
            self._refuse_folder(key)
            insort(self._ordered, key)
        self._writes += 1
        self._objects[key] = (whole, str(self._writes))
        return str(self._writes)

    def _refuse_folder(self, key: str) -> None:
        below = bisect_left(self._ordered, f"{key}/")
        is_folder = below < len(self._ordered) and self._ordered[below].startswith(f"{key}/")
        above = (key[:at] for at, character in enumerate(key) if character == "/")
        if is_folder or any(folder in self._objects for folder in above):
            raise StoreError(f"cannot create {key}: a key cannot be an object and a folder")

    def _walk(self, prefix: str, recursive: bool, after: str) -> Iterator[str]:
        at = max(bisect_left(self._ordered, prefix), bisect_right(self._ordered, after))
        while at < len(self._ordered) and (key := self._ordered[at]).startswith(prefix):
            folder_end = key.find("/", len(prefix))
            if _is_own(key):
                at += 1
            elif recursive or folder_end < 0:
                yield key
                at += 1
            else:
                folder = key[: folder_end + 1]
                if folder > after:
                    yield folder
                # "0" is the character after "/", so this finds the first key after the whole
                # folder.
                at = bisect_left(self._ordered, f"{folder[:-1]}0", at)

    def _describe(self, key: str) -> Entry:
        whole, tag = self._objects[key]
        return Entry(key, len(whole), tag)


def _whole(data: bytes | Path) -> bytes:
    with content.opened(data) as source:
        return source.read()


def _is_own(key: str) -> bool:
    return key.startswith(keys.OWN) or f"/{keys.OWN}" in key
