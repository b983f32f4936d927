"""A store in a directory of a local or shared POSIX file system.

`create` is the one primitive. It does these steps in this order:
  1. Once per folder and process, make and fsync every folder on the path (`folders.py`).
  2. Write the bytes to a file without a name and fsync it (`temporaries.py`). So every name
     refers to an object that is complete and durable.
  3. link(2) the file to its name. The kernel lets exactly one writer win.
  4. fsync the folder, so that the name survives a power cut too. Return only after that.
A writer killed between any two instructions leaves nothing or the complete object. On a file
system without unnamed files it may also leave a temporary file, which `sweep` removes.

A create with `lasting=False` syncs its bytes (step 2) but no folder (steps 1 and 4). A power cut
may remove the name, but never leaves a name without its bytes.

`replace` renames instead of linking. If a twin is given, it only links the twin's file to the new
name. A named file already has its bytes on disk (step 2), so only the new name needs a sync (step
4).

If the name is taken, its file and folder are synced before `create` returns or raises, because the
writer of that file may have died before step 4. Clean-up removes empty folders. A create whose
folder was removed makes the folder again and starts over.

All operations are relative to the descriptor of the opened root folder, not to its name. So a root
that is moved, or hidden by a mount, never looks like an empty store. Otherwise "not found" would
make clean-up delete objects that are only hidden.

Limits: the file system must support link(2), flock(2) and names of 255 bytes, and be
case-sensitive. Without `fsync` a killed process still does no damage, but a power cut may remove
or damage objects that were reported as created.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from caudal.errors import AlreadyExistsError, NotFoundError, StoreError, StoreFullError
from caudal.store import content, keys, walk
from caudal.store.folders import Folder, Folders
from caudal.store.port import PAGE, Entry, Page, Store
from caudal.store.temporaries import FOLDER as TEMPORARY_FOLDER
from caudal.store.temporaries import Temporaries

_ATTEMPTS = 100
_READ_ONLY = os.O_RDONLY | os.O_CLOEXEC
_REMEDIES = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EACCES: "permission denied; check the owner of the store's folder",
    errno.EROFS: "the file system is read-only",
    errno.ENOTDIR: "a part of the key is an object, not a folder",
    errno.EISDIR: "the key is a folder of other objects",
}
_FULL = (errno.ENOSPC, errno.EDQUOT)
_GONE = "this folder is gone"
_Result = TypeVar("_Result")


class DirectoryStore(Store):
    """A store that keeps objects as files below a root folder; the key is the path."""

    def __init__(self, root: Path, *, fsync: bool = True) -> None:
        """Open the store. Create its folder if it is missing.

        `fsync=False` is faster but not durable against power loss. Use it for tests, and for runs
        that can be repeated from their input.
        """
        self._root = root.absolute()
        self._sync: Callable[[int], None] = _fsync if fsync else _leave_to_the_kernel
        try:
            self._folders = Folders(self._root, self._sync)
            self._temporaries = Temporaries(self._folders, self._sync)
        except OSError as error:
            raise StoreError(
                f"cannot open a store in {self._root}: {_why_closed(error)}: "
                "give a folder that can be opened or created"
            ) from error

    def __repr__(self) -> str:
        return f"DirectoryStore({str(self._root)!r})"

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        """See the port. The order of the steps is in this module's docstring."""
        keys.check_key(key)
        self._until_settled("create", key, lambda: self._create(key, data, lasting=lasting))

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        """See the port."""
        keys.check_key(key)
        keys.check_range(offset, length)
        with self._errors("read", key):
            try:
                descriptor = os.open(key, _READ_ONLY, dir_fd=self._root_descriptor)
            except (FileNotFoundError, NotADirectoryError):
                raise NotFoundError(f"there is no object {key}") from None
            try:
                found = os.fstat(descriptor)
                if stat.S_ISDIR(found.st_mode):
                    raise NotFoundError(f"there is no object {key}, only a folder")
                end = found.st_size if length is None else min(found.st_size, offset + length)
                return _read_range(descriptor, offset, end)
            finally:
                os.close(descriptor)

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        """See the port. A page reads the folders that hold its keys, not those before `after`."""
        keys.check_prefix(prefix)
        with self._errors("list", prefix):
            walked = walk.walk(self._level, prefix, recursive=recursive, after=after)
            return walk.page(walked, self._describe, limit)

    def delete(self, key: str, *, lasting: bool = True) -> None:
        """See the port. Also removes folders that become empty."""
        keys.check_key(key)
        with self._errors("delete", key):
            with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                os.unlink(key, dir_fd=self._root_descriptor)
            stays = self._remove_empty_folders(key)
            if lasting:
                self._sync_folder(stays)

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        """See the port. Works like `create`, with rename(2) instead of link(2)."""
        keys.check_key(key)
        keys.check_key(key if twin is None else twin)
        return self._until_settled("replace", key, lambda: self._replace(key, data, twin))

    def time(self) -> float:
        """See the port. Sets and reads the root's mtime: on a network, the server's clock."""
        with self._errors("read the clock", ""):
            os.utime(self._root_descriptor)
            return os.fstat(self._root_descriptor).st_mtime

    def sweep(self, older_than_seconds: float) -> int:
        """Remove what dead writers and killed probes left, if older than this. Return how many."""
        with self._errors("sweep", TEMPORARY_FOLDER):
            swept = self._temporaries.sweep(older_than_seconds)
            dated = self._probes()
            oldest_allowed = self.time() - older_than_seconds if dated else 0.0
            probes = [key for key, modified in dated if modified <= oldest_allowed]
        for key in probes:
            self.delete(key)
        return swept + len(probes)

    def _probes(self) -> Sequence[tuple[str, float]]:
        """Return the keys that probes created, and when. Old ones were left by killed probes."""
        found = []
        with suppress(FileNotFoundError):
            for folder, _, names, here in os.fwalk(keys.PROBE_FOLDER, dir_fd=self._root_descriptor):
                dates = [os.stat(name, dir_fd=here).st_mtime for name in names]
                found += [(f"{folder}/{name}", one) for name, one in zip(names, dates, strict=True)]
        return found

    def _until_settled(self, verb: str, key: str, attempt: Callable[[], _Result]) -> _Result:
        """Repeat `attempt` after each lost race with clean-up, which removes its folders."""
        for _ in range(_ATTEMPTS):
            with self._errors(verb, key):
                try:
                    return attempt()
                except FileNotFoundError:
                    self._folders.forget(key.rpartition("/")[0])
                    self._folders.forget(TEMPORARY_FOLDER)
        reason = "its folder is removed again and again" if self._root.is_dir() else _GONE
        raise StoreError(f"cannot {verb} {key} in {self._root}: {reason}")

    def _create(self, key: str, data: bytes | Path, *, lasting: bool) -> None:
        folder_name, _, name = key.rpartition("/")
        if lasting:
            folder = self._folders.open(folder_name)
        else:
            folder, way = self._folders.make(folder_name)
            name = way + name
        with self._temporaries.to_link(data, folder) as temporary:
            try:
                temporary.link(folder, name)
            except FileExistsError:
                if not self._adopt(folder, name, data):
                    raise AlreadyExistsError(f"{key} is taken by another object") from None
            else:
                if lasting:
                    self._sync(folder.descriptor)

    def _adopt(self, folder: Folder, name: str, data: bytes | Path) -> bool:
        """Sync the file that has this name. Return whether it has the same bytes as `data`."""
        descriptor = os.open(name, _READ_ONLY, dir_fd=folder.descriptor)
        try:
            found = os.fstat(descriptor)
            if stat.S_ISDIR(found.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            self._sync(descriptor)
            self._sync(folder.descriptor)
            stored = iter(partial(os.read, descriptor, content.PIECE_BYTES), b"")
            return found.st_size == content.size(data) and content.same(data, stored)
        finally:
            os.close(descriptor)

    def _replace(self, key: str, data: bytes | Path, twin: str | None) -> str:
        folder_name, _, name = key.rpartition("/")
        folder = self._folders.open(folder_name)
        if twin is not None and (found := self._as_object(twin, content.size(data))):
            self._name_again(twin, folder, name)
            self._sync(folder.descriptor)
            return _tag(found)
        with self._temporaries.to_rename(data) as temporary:
            temporary.rename(folder, name)
            self._sync(folder.descriptor)
            return _tag(os.fstat(temporary.descriptor))

    def _as_object(self, key: str, size: int) -> os.stat_result | None:
        """Return the stat result of an object, or None if it is missing or has another size."""
        try:
            found = os.stat(key, dir_fd=self._root_descriptor)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found if stat.S_ISREG(found.st_mode) and found.st_size == size else None

    def _name_again(self, key: str, folder: Folder, name: str) -> None:
        """Give an object's file a second name. Replace the file that has this name, if any."""
        try:
            os.link(key, name, src_dir_fd=self._root_descriptor, dst_dir_fd=folder.descriptor)
        except FileExistsError:
            with self._temporaries.second_name(key) as temporary:
                temporary.rename(folder, name)

    def _remove_empty_folders(self, key: str) -> str:
        """Remove empty folders from the key's folder upwards. Return the first that remains.

        A create at the same time finds its folder gone and starts over. rmdir(2) never removes a
        folder in which a link has succeeded.
        """
        folder = key.rpartition("/")[0]
        while folder:
            try:
                os.rmdir(folder, dir_fd=self._root_descriptor)
            except FileNotFoundError:
                pass
            except OSError:
                return folder
            folder = folder.rpartition("/")[0]
        return folder

    def _sync_folder(self, name: str) -> None:
        with suppress(FileNotFoundError):
            descriptor = self._open_folder(name)
            try:
                self._sync(descriptor)
            finally:
                os.close(descriptor)

    def _level(self, folder: str) -> Iterator[str]:
        with suppress(FileNotFoundError, NotADirectoryError):
            descriptor = self._open_folder(folder)
            try:
                with os.scandir(descriptor) as found:
                    for entry in found:
                        if keys.is_name(entry.name):
                            yield entry.name + "/" if entry.is_dir() else entry.name
            finally:
                os.close(descriptor)

    def _describe(self, key: str) -> Entry | None:
        try:
            found = os.stat(key, dir_fd=self._root_descriptor)
        except FileNotFoundError:
            return None
        return Entry(key, found.st_size, _tag(found), found.st_mtime)

    def _open_folder(self, name: str) -> int:
        return os.open(name or ".", _READ_ONLY, dir_fd=self._root_descriptor)

    @property
    def _root_descriptor(self) -> int:
        return self._folders.open("").descriptor

    @contextmanager
    def _errors(self, verb: str, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            kind = StoreFullError if error.errno in _FULL else StoreError
            raise kind(f"cannot {verb} {key} in {self._root}: {self._reason(error)}") from error

    def _reason(self, error: OSError) -> str:
        if not self._root.is_dir():
            return _GONE
        return _REMEDIES.get(error.errno or 0, error.strerror or str(error))


def _why_closed(error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "there is a file where a folder should be"
    return (error.strerror or str(error)).lower()


def _fsync(descriptor: int) -> None:
    os.fsync(descriptor)


def _leave_to_the_kernel(descriptor: int) -> None:
    del descriptor


def _tag(found: os.stat_result) -> str:
    return f"{found.st_mtime_ns:x}-{found.st_size:x}-{found.st_ino:x}"


def _read_range(descriptor: int, offset: int, end: int) -> bytes:
    pieces = []
    while offset < end and (piece := os.pread(descriptor, end - offset, offset)):
        pieces.append(piece)
        offset += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
