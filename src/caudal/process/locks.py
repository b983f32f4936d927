"""The lock of a name: one process holds it from its start to its end, however that ends.

The kernel knows it in all containers that share the folder, unlike pids. A look at a lock takes it
shared for a moment, so whoever takes one tries again for a second.
"""

import fcntl
import time
from io import FileIO
from pathlib import Path

from caudal.errors import UsageError

_TRIES = 50
_PAUSE_SECONDS = 0.02


def take_lock(path: Path, name: str) -> FileIO:
    """Take the lock of a name, held until it is closed or the process ends."""
    file = FileIO(path, "a")
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except OSError:
            if left:
                time.sleep(_PAUSE_SECONDS)
    file.close()
    raise UsageError(f"another process already runs as {name}")


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock."""
    try:
        with FileIO(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is no lock, or none can be had here
        return False
    return False
