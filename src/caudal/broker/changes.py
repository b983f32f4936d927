"""Wait until any process of this host changes a file in a folder, with Linux inotify.

Rules
1. No change is missed between a check and a wait, if `forget` was called before the check: the
   kernel queues events from the moment the folder is watched.
2. If nothing can be watched (no inotify, no descriptor left, no such folder), a wait is a short
   pause. The caller then checks again, as it would without this module.
"""

import contextlib
import ctypes
import os
import select
import struct
import time
from pathlib import Path

PAUSE_SECONDS = 0.05  # rule 2
_MODIFY, _MOVED_TO, _CREATE, _IGNORED = 0x2, 0x80, 0x100, 0x8000
_READ_BYTES = 65_536
_HEAD = struct.Struct("iIII")


class Changes:
    """The changes in one folder. Not for use by two threads at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._library = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._opened()
        self._watched = False

    def forget(self) -> None:
        """Drop the events that have happened until now. Call it before a check."""
        if not self._watched:
            self._watched = self._watch()
        with contextlib.suppress(BlockingIOError):
            while self._watched:
                self._read()

    def wait(self, seconds: float) -> None:
        """Return once a change has happened since `forget`, or after that many seconds."""
        if self._watched:
            select.select([self._descriptor], [], [], seconds)
        else:
            time.sleep(min(seconds, PAUSE_SECONDS))

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._watched = -1, False

    def _opened(self) -> int:
        """Return a descriptor, or -1."""
        with contextlib.suppress(AttributeError):
            return int(self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        return -1

    def _watch(self) -> bool:
        if self._descriptor < 0:
            return False
        path, kinds = os.fsencode(self._folder), _MODIFY | _MOVED_TO | _CREATE
        return int(self._library.inotify_add_watch(self._descriptor, path, kinds)) >= 0

    def _read(self) -> None:
        """Read the queued events. Stop watching a folder that was removed."""
        data = os.read(self._descriptor, _READ_BYTES)
        place = 0
        while place < len(data):
            _, kinds, _, length = _HEAD.unpack_from(data, place)
            self._watched = self._watched and not kinds & _IGNORED
            place += _HEAD.size + length
