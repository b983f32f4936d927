"""Listing in key order, for stores that can only list the names in one folder.

1. The order is that of the keys' UTF-8 bytes. This equals the order of Python strings, because
   UTF-8 keeps the order of code points.
2. A folder is sorted as `name/`: `a-b` comes before `a/b`, which comes before `a0`. Sorting by
   file name would put folder `a` first, as file systems and some S3 servers do.
3. A folder that is entirely before `after` is never opened. One page reads each level on the path
   to `after`, and the folders that hold the page's keys. Where reading a folder is a request (S3),
   whole trees are read at once instead (`s3.py`, rule 3).
4. A level is read completely. Keep levels small (Caudal's hold hundreds of names, except jobs).
"""

from collections.abc import Callable, Iterable, Iterator

from caudal.store.port import Entry, Page

Level = Callable[[str], Iterable[str]]
"""A function that returns the names in a folder (`""` or `a/b/`). Folder names end with `/`."""

Describe = Callable[[str], Entry | None]
"""A function that returns the entry of a key, or None if the object was deleted meanwhile."""


def page(walked: Iterator[str], describe: Describe, limit: int) -> Page:
    """Return a page of the first `limit` keys and folders."""
    found: list[Entry] = []
    folders: list[str] = []
    last = ""
    for path in walked:
        if len(found) + len(folders) >= limit:
            return Page(tuple(found), tuple(folders), last)
        if path.endswith("/"):
            folders.append(path)
        elif (entry := describe(path)) is not None:
            found.append(entry)
        last = path
    return Page(tuple(found), tuple(folders))


def walk(level: Level, prefix: str, *, recursive: bool, after: str) -> Iterator[str]:
    """Yield the keys that begin with `prefix` and come after `after`, in order.

    Recursive: also yield empty folders. Not recursive: yield one level with its folders.
    """
    folder = prefix[: prefix.rfind("/") + 1]
    paths = [path for name in level(folder) if (path := folder + name).startswith(prefix)]
    yield from _walk(level, paths, recursive=recursive, after=after)


def _walk(level: Level, paths: list[str], *, recursive: bool, after: str) -> Iterator[str]:
    for path in sorted(path for path in paths if path > after or after.startswith(path)):
        inner = None
        if recursive and path.endswith("/"):
            inner = [path + name for name in level(path)]
        if inner:
            yield from _walk(level, inner, recursive=True, after=after)
        elif path > after:
            yield path
