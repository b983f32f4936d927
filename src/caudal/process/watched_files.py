"""Files that may change while a process runs: tokens, quotas, certificates.

Rules
1. A look costs a few system calls, so there is at most one in a while, whoever asks.
2. A file is another one when its inode, its times or its size differ. What is noted is how it was
   before it was read: a change in the middle of reading is seen by the next look.
3. A new content that is wrong changes nothing: what was read last goes on, and the log says why.
"""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from caudal.errors import UsageError
from caudal.process.logs import fields

EVERY_SECONDS = 1.0

Content = TypeVar("Content")
_State = tuple[tuple[int, ...] | None, ...]

_log = logging.getLogger(__name__)


class Followed(Generic[Content]):
    """What some files say, read again when they change. Several threads may ask."""

    def __init__(
        self,
        paths: Sequence[Path],
        read: Callable[[], Content],
        *,
        every_seconds: float = EVERY_SECONDS,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read for the first time; what is wrong then is raised."""
        self._paths = tuple(paths)
        self._read = read
        self._every_seconds = every_seconds
        self._elapsed = elapsed
        self._lock = Lock()
        self._seen = _state(self._paths)
        self._looked = elapsed()
        self._content = read()
        self.is_stale = False  # the files hold something wrong, and an older content is used

    def now(self) -> Content:
        """The content, at most a moment old."""
        with self._lock:
            at = self._elapsed()
            if at - self._looked >= self._every_seconds:
                self._looked = at
                self._look()
            return self._content

    def _look(self) -> None:
        state = _state(self._paths)
        if state != self._seen:
            self._seen = state
            self._read_again()

    def _read_again(self) -> None:
        files = ", ".join(str(path) for path in self._paths)
        try:
            self._content = self._read()
        except (UsageError, OSError) as error:
            self.is_stale = True
            _log.error("a changed file is not used", extra=fields(file=files, reason=str(error)))
        else:
            self.is_stale = False
            _log.info("a changed file is used", extra=fields(file=files))


def _state(paths: tuple[Path, ...]) -> _State:
    return tuple(_state_of(path) for path in paths)


def _state_of(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
