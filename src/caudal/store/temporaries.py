"""Files that are being written and do not have their final name yet.

1. `create` writes a file without a name (O_TMPFILE). If the writer dies, nothing is left.
2. On file systems without such files, and for `replace`, which must rename, the temporary file is
   in the folder `.caudal-tmp`. Its writer holds an exclusive flock(2) on it from its creation to
   its removal. The kernel releases the lock when the writer dies for any reason.
3. So a process that gets the lock of a temporary file knows that the writer is dead, on any
   machine that shares the file system, and may remove the file. This needs no pid, clock or boot
   id. The age given to `sweep` only avoids trying files that are certainly new.
4. A writer may be suspended between creating the file and locking it, and `sweep` may remove the
   file then. The writer gets an error when it links the file, and starts again.
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
_TICK_NANOSECONDS = 10_000_000  # the longest one of Linux


@dataclass(frozen=True)
class Temporary:
    """A complete, synced file without its final name; `path` is relative to `folder`, if any.

    `descriptor` is open if the file was just written.
    """

    path: str
    folder: Folder | None = None
    descriptor: int = -1

    def link(self, folder: Folder, name: str) -> None:
        """Link the file to its final name. Raise FileExistsError if the name is taken."""
        source = None if self.folder is None else self.folder.descriptor
        os.link(self.path, name, src_dir_fd=source, dst_dir_fd=folder.descriptor)

    def rename(self, folder: Folder, name: str) -> None:
        """Rename the file to its final name. Replace the file that has this name, if any."""
        source = None if self.folder is None else self.folder.descriptor
        os.rename(self.path, name, src_dir_fd=source, dst_dir_fd=folder.descriptor)


class Temporaries:
    """The temporary files of one store."""

    def __init__(self, folders: Folders, sync: Callable[[int], None]) -> None:
        self._folders = folders
        self._sync = sync
        self._nameless = nameless_files_work(folders.open(""))

    def to_link(self, data: bytes | Path, folder: Folder) -> AbstractContextManager[Temporary]:
        """Yield a synced file with this content, to be linked in this folder.

        The file is gone at the end unless it was linked.
        """
        return self._without_name(data, folder) if self._nameless else self.to_rename(data)

    @contextmanager
    def to_rename(self, data: bytes | Path) -> Iterator[Temporary]:
        """Yield a synced file with this content. Its temporary name is removed at the end."""
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
        """Yield a temporary second name of a stored object's file. It is removed at the end.

        This name is not locked. If `sweep` removes it too early, rule 4 applies. rename(2) between
        two names of one file does nothing, so the temporary name is removed after a rename too.
        """
        root, folder, name = self._folders.open(""), self._folders.open(FOLDER), _new_name()
        os.link(key, name, src_dir_fd=root.descriptor, dst_dir_fd=folder.descriptor)
        try:
            yield Temporary(name, folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder.descriptor)

    def sweep(self, older_than_seconds: float) -> int:
        """Remove the files that dead writers left. Return the number removed."""
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
        _date(descriptor)
        self._sync(descriptor)


def _date(descriptor: int) -> None:
    """Date a file by the clock of its file system; on a network, the server's.

    Tags contain this time, and that clock is coarse: two writes in one tick get the same. So the
    digits below a tick are those of this machine.
    """
    os.utime(descriptor)
    coarse, fine = os.fstat(descriptor).st_mtime_ns, time.time_ns()
    dated = coarse - coarse % _TICK_NANOSECONDS + fine % _TICK_NANOSECONDS
    os.utime(descriptor, ns=(dated, dated))


def nameless_files_work(folder: Folder) -> bool:
    """Return whether this file system can create a file without a name and link it later."""
    try:
        descriptor = os.open(".", _NAMELESS, _MODE, dir_fd=folder.descriptor)
    except OSError:
        return False
    try:
        return Path(f"/proc/self/fd/{descriptor}").is_symlink()
    finally:
        os.close(descriptor)


def _open_nameless(folder: Folder) -> int:
    """Create an unnamed file in the folder where it will be linked.

    File systems store the files of one folder close together.
    """
    try:
        return os.open(".", _NAMELESS, _MODE, dir_fd=folder.descriptor)
    except PermissionError:
        if os.fstat(folder.descriptor).st_nlink:
            raise
        # ext4 raises PermissionError for a folder that was removed.
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
