"""Open folders of a directory store, each with a durable way down from the root.

A folder that exists need not be durable: another process may have made it and not yet synced its
parent, and a power cut would take it with everything in it. So the first time a process uses a
folder for something that must last, it syncs every folder above it, whoever made them. It keeps
the folder open, and the open descriptor is the proof: as long as links through it succeed, it is
that very folder. Once clean-up removed it, every link fails with "no such file", even if a new
folder took the name.
"""

import os
import resource
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock

_MOST_KEPT = 1024


class Folder:
    """An open folder; closed when nobody holds it any more. Durable once those above are synced."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.is_durable = False

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.descriptor)


class Folders:
    """The folders below a root, made when missing; a bounded number is kept open."""

    def __init__(self, root: Path, sync: Callable[[int], None]) -> None:
        self._sync = sync
        self._root = Folder(self._open_root(root))
        self._kept: OrderedDict[str, Folder] = OrderedDict()
        self._lock = Lock()
        self._most = _most_kept()

    def open(self, name: str, *, lasting: bool = True) -> Folder:
        """The folder of this name (`""` is the root), made if missing; if `lasting`, durable.

        Raises FileNotFoundError if clean-up removed a folder on the way: forget it and try again.
        """
        if not name:
            return self._root
        folder = self._kept_open(name) or self._open_below(name, lasting=lasting)
        if lasting and not folder.is_durable:
            above = self.open(_above(name))  # held: a folder that is dropped is closed
            self._sync(above.descriptor)
            folder.is_durable = True
        return folder

    def forget(self, name: str) -> None:
        """Close this folder and those above it: the next `open` looks at the disk again."""
        with self._lock:
            while name:
                self._kept.pop(name, None)
                name = _above(name)

    def drop(self, name: str) -> None:
        """Close a folder that is no more."""
        with self._lock:
            self._kept.pop(name, None)

    def _kept_open(self, name: str) -> Folder | None:
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
            return self._kept.get(name)

    def _open_below(self, name: str, *, lasting: bool) -> Folder:
        above, own_name = self.open(_above(name), lasting=lasting), name.rpartition("/")[2]
        with suppress(FileExistsError):
            os.mkdir(own_name, dir_fd=above.descriptor)
        folder = Folder(os.open(own_name, _FOLDER, dir_fd=above.descriptor))
        with self._lock:
            self._kept[name] = folder
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return folder

    def _open_root(self, root: Path) -> int:
        missing = [root, *root.parents]
        missing = missing[: next(i for i, path in enumerate(missing) if path.exists())]
        root.mkdir(parents=True, exist_ok=True)
        for path in missing:
            above = Folder(os.open(path.parent, _FOLDER))
            self._sync(above.descriptor)
        return os.open(root, _FOLDER)


def _above(name: str) -> str:
    return name.rpartition("/")[0]


def _most_kept() -> int:
    """A quarter of the files that this process may have open."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_KEPT if allowed < 0 else min(_MOST_KEPT, allowed // 4)


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
