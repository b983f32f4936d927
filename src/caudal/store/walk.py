"""Listing in the order of keys, over a store that only knows the names within one folder.

1. The order is that of the keys' UTF-8 bytes, which is the order of Python's strings, since
   UTF-8 keeps the order of code points.
2. A folder takes its place as `name/`: `a-b` comes before `a/b`, which comes before `a0`. Sorting
   file names instead would put folder `a` first; file systems and some S3 servers do.
3. A folder that lies wholly before `after` is never opened. What is read for one page is: each
   level on the way down to `after`, and the folders that the page's own keys lie in. Where reading
   a folder is a request (S3), whole trees are not walked but read at once (`s3.py`, rule 3).
4. A level is read whole. Keep levels small (Caudal's hold hundreds of names, jobs aside).
"""

from collections.abc import Callable, Iterable, Iterator

from caudal.store.port import Entry, Page

Level = Callable[[str], Iterable[str]]
"""The names in a folder (`""` or `a/b/`); those of folders end with `/`."""

Describe = Callable[[str], Entry | None]
"""What a listing says of a key; None if the object has gone meanwhile."""


def page(walked: Iterator[str], describe: Describe, limit: int) -> Page:
    """The first `limit` of these keys and folders."""
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
    """The keys that begin with `prefix` and come after `after`, in order.

    Recursive: also the folders that are empty. Not recursive: one level, and the folders at it.
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
