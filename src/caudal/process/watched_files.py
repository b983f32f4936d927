"""Files that may change while a process runs: tokens, quotas, certificates.

Rules
1. A check costs a few system calls, so there is at most one per `every_seconds`, however many
   callers there are.
2. A file has changed if its inode, its times or its size differ. The state is noted before the
   file is read, so a change during reading is seen by the next check.
3. Invalid new content changes nothing: the content read last stays in use, and the log says why.
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
    """The content of some files, read again when they change. Thread-safe."""

    def __init__(
        self,
        paths: Sequence[Path],
        read: Callable[[], Content],
        *,
        every_seconds: float = EVERY_SECONDS,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read for the first time; raise if the content is invalid."""
        self._paths = tuple(paths)
        self._read = read
        self._every_seconds = every_seconds
        self._elapsed = elapsed
        self._lock = Lock()
        self._seen = _state(self._paths)
        self._looked = elapsed()
        self._content = read()
        self.is_stale = False  # the files are invalid, and older content is used

    def now(self) -> Content:
        """Return the content, at most `every_seconds` old."""
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
