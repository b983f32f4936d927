"""A worker's own folder, for spilled data and for suspects. It is empty at every start.

A worker holds a lock inside its folder as long as it lives. A starting worker removes all folders
whose lock is free: they belong to workers that were killed.
"""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "caudal-worker-"
_LOCK = "lock"


@contextmanager
def own_folder(parent: Path | None = None) -> Iterator[Path]:
    """Create a folder, and remove it at the end. Remove abandoned folders of the same user now."""
    place = parent or Path(tempfile.gettempdir())
    sweep(place)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    with (folder / _LOCK).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def sweep(place: Path) -> None:
    """Remove the folders of killed workers. A folder without lock file is just being created."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError), (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
