"""The store port: everything Caudal needs from durable storage.

Rules that every implementation keeps (tests/contract/test_store.py):

1. `create` is create-if-absent, atomic and durable. When it returns, the object exists, is
   complete and survives a power cut (unless `lasting` or a setting gave that up). When it raises
   AlreadyExistsError, another object existed first, and that object is as durable as the new one
   would have been.
2. `create` itself resolves an unknown outcome (the answer was lost, or the client library
   retried). If the object under the key has exactly these bytes, `create` treats it as its own and
   returns. Identical bytes from another writer are equally good.
3. Objects never change. Only clean-up deletes them. `replace` is only for series: the files that
   people and tools open by name.
4. A listing is sorted by the UTF-8 bytes of the keys and split into pages; `after` is the last key
   of the previous page. It contains every object whose create returned before the listing began. A
   folder whose objects are all deleted may still be listed for a while.
5. Keys are `/`-separated names; no empty name, no `.` or `..`, no leading or trailing `/`. Names
   that begin with `.caudal-` are reserved for the store and never listed. `keys.py` has the
   details.
6. No key is the folder of another key (`a` and `a/b`). A store may refuse the second one, or omit
   it from listings.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

PAGE = 1000

LARGE_PAGE = 100_000
"""The page size that `pages` uses. S3 reads everything below the prefix for each page, and a
directory reads every level on the path, so fewer pages cost less. This many entries take about
40 MB.
"""


@dataclass(frozen=True)
class Entry:
    """One object in a listing. `tag` changes whenever the object's bytes change.

    `modified` is when it was created, in seconds since 1970 by the store's clock (see `time`); 0
    in a store without one.
    """

    key: str
    size: int
    tag: str
    modified: float = 0.0


@dataclass(frozen=True)
class Page:
    """A part of a listing.

    `folders` end with `/`. In a listing of one level they are the folders at that level. In a
    recursive listing they are the empty folders, in stores that have them: a writer made them and
    died, or is about to use them. Deleting any key in an empty folder removes the folder; a living
    writer makes it again.

    `last` is where the next page begins (pass it as `after`). It is None on the last page.
    """

    entries: tuple[Entry, ...]
    folders: tuple[str, ...] = ()
    last: str | None = None


class Store(Protocol):
    """Durable storage of immutable objects."""

    parallel_requests: int = 4  # useful at the same time: few for a disk, many over a network

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        """Create an object from these bytes, or from a local file, which is streamed.

        Raises AlreadyExistsError if the key is taken by other bytes. Raises StoreError if the
        store cannot be reached: the outcome is then unknown, and the caller may try again.

        With `lasting=False`, a power cut may remove the whole object, but never damages it. Use it
        for objects that readers can do without.
        """

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return the bytes of an object, or of a range of it (shorter at the object's end).

        Raises NotFoundError.
        """

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        """List the objects whose key begins with `prefix` and comes after the key `after`.

        Not recursive: list the objects directly at this level, and the folders (common prefixes up
        to the next `/`) instead of the objects below them. A folder is compared with `after` by
        its own name, including the `/`. `limit` counts objects and folders together.
        """

    def delete(self, key: str, *, lasting: bool = True) -> None:
        """Remove an object. Do nothing if there is none.

        With `lasting=False`, a power cut may restore the object. Use it for objects that no reader
        relies on and that clean-up would find again.
        """

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        """Write these bytes under the key, atomically, even if it is taken. Return the new tag.

        Readers see the complete old object or the complete new one. For series only.

        `twin` is the key of an object that is known to hold exactly these bytes. A store that can
        give one object two names then need not write it again. The result is the same without a
        twin, or if the twin is gone.
        """

    def sweep(self, older_than_seconds: float) -> int:
        """Remove what interrupted writes of that age left behind. Return the number removed.

        Stores in which writes leave nothing behind return 0.
        """
        return 0

    def time(self) -> float | None:
        """Return the seconds since 1970 by the clock that dates objects; None without one."""
        return None


def pages(store: Store, prefix: str, *, recursive: bool = True) -> Iterator[Page]:
    """Yield every page of a listing: everything below a prefix, or one level."""
    after = ""
    while True:
        page = store.list(prefix, recursive=recursive, after=after, limit=LARGE_PAGE)
        yield page
        if page.last is None:
            return
        after = page.last


def entries(store: Store, prefix: str) -> Iterator[Entry]:
    """Yield all objects below a prefix."""
    for page in pages(store, prefix):
        yield from page.entries


def folder_names(store: Store, prefix: str) -> Iterator[str]:
    """Yield the names of the folders directly below a prefix that ends with `/`."""
    for page in pages(store, prefix, recursive=False):
        yield from (folder[len(prefix) : -1] for folder in page.folders)


def key_in(empty_folder: str) -> str:
    """Return a key whose deletion removes an empty folder."""
    return f"{empty_folder}nothing"
