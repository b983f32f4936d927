"""A worker's own folder, for what spills and for suspects. Empty at every start.

A worker holds a lock inside its folder as long as it lives. Whoever starts removes the folders
whose lock nobody holds: those of workers that were killed.
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
    """A new folder, removed at the end; left ones of the same user are removed now."""
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
    """Remove what killed workers left. One that is just being made has no lock file yet."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError), (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
