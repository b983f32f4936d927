"""Who uses the embedded broker: a session is a file whose lock lasts as long as its process."""

import fcntl
import os
from pathlib import Path
from uuid import uuid4


class Session:
    """A file whose lock lasts as long as this process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self.name = path.name

    @classmethod
    def begun(cls, folder: Path) -> "Session":
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in folder.iterdir():
            is_over(path)  # which removes it then
        while True:
            path = folder / uuid4().hex
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if inode_of(path) == os.fstat(descriptor).st_ino:
                return cls(path, descriptor)
            os.close(descriptor)  # somebody took it for one that is over, just before the lock

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def is_over(path: Path) -> bool:
    """Whether nobody holds the lock of a session any more; if so its file is removed."""
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
    """The number of the file at a path; 0 if there is none."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0
