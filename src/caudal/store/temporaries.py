"""Files being written, before they have their name.

1. `create` writes a file without any name (O_TMPFILE): a writer that dies leaves nothing at all.
2. Where the file system has no such files, and for `replace`, which must rename, a temporary file
   lies in the folder `.caudal-tmp`. Its writer holds an exclusive flock(2) on it from the moment it
   made it until it removed it, and the kernel drops the lock when the writer dies, however it dies.
3. So whoever gets the lock of a temporary file knows that its writer is dead, on any machine that
   shares the file system, and may remove the file. No pid, clock or boot id is involved; the age
   given to `sweep` only spares it from trying files that are certainly young.
4. Between making the file and locking it a writer could be frozen and its file swept. It then
   finds its temporary gone when it wants to link it, and starts again.
"""

import errno
import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from caudal.store import content
from caudal.store.folders import Folder, Folders

FOLDER = ".caudal-tmp"
_NAMED = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_NAMELESS = os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC
_MODE = 0o666


@dataclass(frozen=True)
class Temporary:
    """A whole, synced file without its final name; `path` is relative to `folder`, if any.

    `descriptor` is open if the file was written just now.
    """

    path: str
    folder: Folder | None = None
    descriptor: int = -1

    def link(self, folder: Folder, name: str) -> None:
        """Give it its name, if that is free: FileExistsError otherwise."""
        source = None if self.folder is None else self.folder.descriptor
        os.link(self.path, name, src_dir_fd=source, dst_dir_fd=folder.descriptor)

    def rename(self, folder: Folder, name: str) -> None:
        """Give it its name, and take it from the file that has it."""
        source = None if self.folder is None else self.folder.descriptor
        os.rename(self.path, name, src_dir_fd=source, dst_dir_fd=folder.descriptor)


class Temporaries:
    """The temporary files of one store."""

    def __init__(self, folders: Folders, sync: Callable[[int], None]) -> None:
        self._folders = folders
        self._sync = sync
        self._nameless = nameless_files_work(folders.open(""))

    def to_link(self, data: bytes | Path, folder: Folder) -> AbstractContextManager[Temporary]:
        """A synced file with this content, to be linked in this folder, else gone at the end."""
        return self._without_name(data, folder) if self._nameless else self.to_rename(data)

    @contextmanager
    def to_rename(self, data: bytes | Path) -> Iterator[Temporary]:
        """A synced file with this content; its temporary name is gone at the end."""
        folder = self._folders.open(FOLDER)
        name = _new_name()
        descriptor = os.open(name, _NAMED, _MODE, dir_fd=folder.descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._fill(descriptor, data)
            yield Temporary(name, folder, descriptor)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder.descriptor)
            os.close(descriptor)

    @contextmanager
    def second_name(self, key: str) -> Iterator[Temporary]:
        """The file of a stored object under a temporary name too, which is gone at the end.

        Nobody locks it: swept under our hands, it is as in rule 4. rename(2) between two names of
        one file does nothing, so the temporary name is removed after a rename too.
        """
        root, folder, name = self._folders.open(""), self._folders.open(FOLDER), _new_name()
        os.link(key, name, src_dir_fd=root.descriptor, dst_dir_fd=folder.descriptor)
        try:
            yield Temporary(name, folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder.descriptor)

    def sweep(self, older_than_seconds: float) -> int:
        """Remove what dead writers left; gives how many files."""
        folder = self._folders.open(FOLDER)
        oldest_allowed = time.time() - older_than_seconds
        with os.scandir(folder.descriptor) as found:
            names = [entry.name for entry in found]
        return sum(_remove_abandoned(folder, name, oldest_allowed) for name in names)

    @contextmanager
    def _without_name(self, data: bytes | Path, folder: Folder) -> Iterator[Temporary]:
        descriptor = _open_nameless(folder)
        try:
            self._fill(descriptor, data)
            yield Temporary(f"/proc/self/fd/{descriptor}", descriptor=descriptor)
        finally:
            os.close(descriptor)

    def _fill(self, descriptor: int, data: bytes | Path) -> None:
        _write(descriptor, data)
        # Tags are made of this time, and the kernel's own is coarse: two in a tick are equal.
        os.utime(descriptor, ns=(time.time_ns(), time.time_ns()))
        self._sync(descriptor)


def nameless_files_work(folder: Folder) -> bool:
    """Whether this file system can make a file first and name it later."""
    try:
        descriptor = os.open(".", _NAMELESS, _MODE, dir_fd=folder.descriptor)
    except OSError:
        return False
    try:
        return Path(f"/proc/self/fd/{descriptor}").is_symlink()
    finally:
        os.close(descriptor)


def _open_nameless(folder: Folder) -> int:
    """Made where it will be linked: file systems keep a folder's files together."""
    try:
        return os.open(".", _NAMELESS, _MODE, dir_fd=folder.descriptor)
    except PermissionError:
        if os.fstat(folder.descriptor).st_nlink:
            raise
        # What ext4 says of a folder that was removed.
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None


def _new_name() -> str:
    return f"{os.getpid()}-{secrets.token_hex(16)}"


def _write(descriptor: int, data: bytes | Path) -> None:
    with content.opened(data) as source:
        while piece := source.read(content.PIECE_BYTES):
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(descriptor, rest) :]


def _remove_abandoned(folder: Folder, name: str, oldest_allowed: float) -> bool:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder.descriptor)
    except FileNotFoundError:
        return False
    try:
        if os.fstat(descriptor).st_mtime > oldest_allowed:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=folder.descriptor)
        return True
    except (BlockingIOError, FileNotFoundError):
        return False
    finally:
        os.close(descriptor)
