"""Open folders of a directory store, each with a durable path from the root.

A folder that exists may not be durable yet. Another process may have made it and not yet synced
its parent; a power cut would then remove it with everything in it. So the first time a process
uses a folder, it syncs every folder above it, no matter which process made them. Then it keeps the
folder open. The open descriptor is the proof: while links through it succeed, it is the same
folder. After clean-up has removed the folder, every link fails with "no such file", even if a new
folder has the same name.

A folder for objects that need not last is only made. It is neither synced nor kept open, so that a
later `open` does not treat it as durable.
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
    """An open folder. It is closed when the last reference to it is gone."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.descriptor)


class Folders:
    """The folders below a root, made when missing. A bounded number is kept open."""

    def __init__(self, root: Path, sync: Callable[[int], None]) -> None:
        self._sync = sync
        self._root = Folder(self._open_root(root))
        self._kept: OrderedDict[str, Folder] = OrderedDict()
        self._lock = Lock()
        self._most = _most_kept()

    def open(self, name: str) -> Folder:
        """Return the folder of this name (`""` is the root), made if missing, and durable.

        Raises FileNotFoundError if clean-up removed a folder on the path. Call `forget` and try
        again.
        """
        if not name:
            return self._root
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        folder = self._open_below(*name.rpartition("/")[::2])
        with self._lock:
            self._kept[name] = folder
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return folder

    def make(self, name: str) -> tuple[Folder, str]:
        """Make a folder for objects that need not last.

        Returns an open folder above it, and the relative path (`""`, `a/b/`) from there to the new
        one. Raises FileNotFoundError like `open`.
        """
        near = name
        with self._lock:
            while near and near not in self._kept:
                near = near.rpartition("/")[0]
            folder = self._kept[near] if near else self._root
        way = ""
        for part in filter(None, name[len(near) :].split("/")):
            way += f"{part}/"
            with suppress(FileExistsError):
                os.mkdir(way, dir_fd=folder.descriptor)
        return folder, way

    def forget(self, name: str) -> None:
        """Close this folder and those above it. The next `open` looks at the disk again."""
        with self._lock:
            while name:
                self._kept.pop(name, None)
                name = name.rpartition("/")[0]

    def _open_below(self, parent_name: str, name: str) -> Folder:
        parent = self.open(parent_name)
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent.descriptor)
        folder = Folder(os.open(name, _FOLDER, dir_fd=parent.descriptor))
        self._sync(parent.descriptor)
        return folder

    def _open_root(self, root: Path) -> int:
        missing = [root, *root.parents]
        missing = missing[: next(i for i, path in enumerate(missing) if path.exists())]
        root.mkdir(parents=True, exist_ok=True)
        for path in missing:
            above = Folder(os.open(path.parent, _FOLDER))
            self._sync(above.descriptor)
        return os.open(root, _FOLDER)


def _most_kept() -> int:
    """Return at most a quarter of the number of files that this process may open."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_KEPT if allowed < 0 else min(_MOST_KEPT, allowed // 4)


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
