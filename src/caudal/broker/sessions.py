"""Sessions of the embedded broker. A session is a file that its process keeps locked."""

import fcntl
import os
from pathlib import Path
from uuid import uuid4


class Session:
    """A file that this process keeps locked until it ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self.name = path.name

    @classmethod
    def begun(cls, folder: Path) -> "Session":
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in folder.iterdir():
            is_over(path)  # removes it if it has ended
        while True:
            path = folder / uuid4().hex
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if inode_of(path) == os.fstat(descriptor).st_ino:
                return cls(path, descriptor)
            os.close(descriptor)  # another process saw it before it was locked, and removed it

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def is_over(path: Path) -> bool:
    """Return whether no process holds the lock of a session. If so, remove its file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(descriptor)


def inode_of(path: Path) -> int:
    """Return the inode number of the file at a path; 0 if there is none."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0
