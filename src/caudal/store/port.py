"""The store port: everything Caudal asks of durable storage.

Rules that every implementation keeps (tests/contract/test_store.py):
1. `create` is create-if-absent, atomic and durable. When it returns, the object is there, whole,
   and survives a power cut (unless `lasting` or a setting traded that away). When it raises
   AlreadyExistsError, another object was there first, and that one is as durable as ours was to be.
2. A create whose outcome is unknown (the answer was lost, the client library retried by itself)
   is settled inside `create`: if the object under the key has exactly these bytes, it is taken
   for our own and `create` returns. Identical bytes of somebody else are as good as our own.
3. Objects never change. Only clean-up deletes them. `replace` is for series alone: the files that
   people and tools open by name.
4. A listing is by key in the order of its UTF-8 bytes, page by page; `after` names the last key
   of the page before. An object whose create returned before the listing began is in it. A folder
   whose objects are all deleted may still be listed for a while.
5. Keys are `/`-separated names; no empty name, no `.` or `..`, no leading or trailing `/`. Names
   that begin with `.caudal-` are the store's own and never listed. `keys.py` has the details.
6. No key is the folder of another (`a` and `a/b`): a store may refuse the second, or lose sight
   of it in listings.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

PAGE = 1000

LARGE_PAGE = 100_000
"""What `pages` asks for: for each page S3 reads all that lies below the prefix, and a directory the
levels on the way, so fewer pages are less work. So many entries take about 40 MB."""


@dataclass(frozen=True)
class Entry:
    """One object in a listing. `tag` changes whenever the object's bytes do."""

    key: str
    size: int
    tag: str


@dataclass(frozen=True)
class Page:
    """A part of a listing.

    `folders` end with `/`. In a listing of one level they are the folders at it; in a recursive one
    those that are empty, in stores that have such a thing: a writer that died made them, or is
    about to use them. Deleting any key in it removes an empty folder; a living writer makes it
    again.

    `last` is where the next page begins (give it as `after`); None at the end.
    """

    entries: tuple[Entry, ...]
    folders: tuple[str, ...] = ()
    last: str | None = None


class Store(Protocol):
    """Durable storage of immutable objects."""

    parallel_requests: int = 4  # that make sense at once: few for a disk, many over a network

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        """Make an object of these bytes, or of a local file's, streamed.

        Raises AlreadyExistsError if the key is taken by other bytes, StoreError if the store
        cannot be reached: then nothing is known, and the caller may ask again.

        Not `lasting`: a power cut may take the object, whole, but not damage it. For what its
        readers can do without.
        """

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        """The bytes of an object, or of a range of it (shorter at the object's end).

        Raises NotFoundError.
        """

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        """The objects whose key begins with `prefix`, those after the key `after`.

        Not recursive: objects directly at this level, and the folders (common prefixes up to the
        next `/`) instead of what lies below them; a folder comes after `after` if its own name,
        with its `/`, does. `limit` counts objects and folders together.
        """

    def delete(self, key: str, *, lasting: bool = True) -> None:
        """Remove an object; nothing happens if there is none.

        Not `lasting`: a power cut may bring it back. For what nobody goes by, and clean-up would
        find again.
        """

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        """Put these bytes under the key whether it is taken or not, atomically; gives the tag.

        Readers see the old object or the new one, whole. For series only.

        `twin` is the key of an object that is known to hold exactly these bytes: a store that can
        give one object two names need not write it again. The outcome is the same without it, also
        if the twin is gone.
        """

    def sweep(self, older_than_seconds: float) -> int:
        """Remove what interrupted writes of that age left behind, if this store can have such;
        gives how many."""
        return 0

    def time(self) -> float | None:
        """Return the time by the clock that dates its objects, since 1970; None without one."""
        return None


def pages(store: Store, prefix: str, *, recursive: bool = True) -> Iterator[Page]:
    """Everything below a prefix, or at one level."""
    after = ""
    while True:
        page = store.list(prefix, recursive=recursive, after=after, limit=LARGE_PAGE)
        yield page
        if page.last is None:
            return
        after = page.last


def entries(store: Store, prefix: str) -> Iterator[Entry]:
    """All objects below a prefix."""
    for page in pages(store, prefix):
        yield from page.entries


def folder_names(store: Store, prefix: str) -> Iterator[str]:
    """The names of the folders directly below a prefix that ends with `/`."""
    for page in pages(store, prefix, recursive=False):
        yield from (folder[len(prefix) : -1] for folder in page.folders)


def key_in(empty_folder: str) -> str:
    """A key to delete, so that an empty folder goes."""
    return f"{empty_folder}nothing"
