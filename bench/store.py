"""How fast the directory store creates small objects. `python -m bench.store [FOLDER]`.

The floor is what the disk allows: the bare system calls that a durable create cannot do without,
measured in the same folder just before. Target: 1,500 creates a second, one process, one thread.
"""

import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from caudal.store import DirectoryStore, entries

_BYTES = b"x" * 1024
_COUNT = 3_000
_GROUP = 256
_REPEATS = 3
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_NAMELESS = os.O_WRONLY | os.O_TMPFILE


@dataclass(frozen=True)
class Speed:
    """Operations a second: the median of a few runs."""

    what: str
    per_second: float

    def sentence(self) -> str:
        return f"{self.what:<44}{self.per_second:>10,.0f} /s"


def measure(folder: Path | None = None) -> list[Speed]:
    """The floor, creates by thread count with and without fsync, and listing."""
    speeds = [Speed("bare system calls, fsync, 1 thread", _median(_floor, folder))]
    for threads, fsync in ((1, True), (4, True), (16, True), (1, False)):
        plural = "threads" if threads > 1 else "thread"
        name = f"create, {'fsync' if fsync else 'no fsync'}, {threads} {plural}"
        run = partial(_creates, threads=threads, fsync=fsync)
        speeds.append(Speed(name, _median(run, folder)))
    speeds.append(Speed("list, objects", _median(_listing, folder)))
    return speeds


def creates_per_second(folder: Path | None = None) -> float:
    """Durable creates from one process, on one thread."""
    return _median(partial(_creates, threads=1, fsync=True), folder)


def _median(run: Callable[[Path], float], folder: Path | None) -> float:
    speeds = []
    for _ in range(_REPEATS):
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            speeds.append(run(Path(scratch)))
    return sorted(speeds)[len(speeds) // 2]


def _creates(folder: Path, threads: int, fsync: bool) -> float:
    store = DirectoryStore(folder, fsync=fsync)

    def create(number: int) -> None:
        store.create(_key(number), _BYTES)

    with ThreadPoolExecutor(threads) as pool:
        each = map if threads == 1 else pool.map
        began = time.perf_counter()
        deque(each(create, range(_COUNT)), maxlen=0)
        return _COUNT / (time.perf_counter() - began)


def _listing(folder: Path) -> float:
    store = DirectoryStore(folder, fsync=False)
    for number in range(_COUNT):
        store.create(_key(number), _BYTES)
    began = time.perf_counter()
    count = sum(1 for _ in entries(store, "jobs/"))
    return count / (time.perf_counter() - began)


def _key(number: int) -> str:
    return f"jobs/job/run/mapped/table/{number // _GROUP:06}/{number % _GROUP:03}"


def _floor(folder: Path) -> float:
    opened = os.open(folder, _FOLDER)
    try:
        began = time.perf_counter()
        for number in range(_COUNT):
            _bare_create(opened, f"{number}")
        return _COUNT / (time.perf_counter() - began)
    finally:
        os.close(opened)


def _bare_create(folder: int, name: str) -> None:
    descriptor = os.open(".", _NAMELESS, 0o666, dir_fd=folder)
    os.write(descriptor, _BYTES)
    os.fsync(descriptor)
    os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder)
    os.fsync(folder)
    os.close(descriptor)


if __name__ == "__main__":
    for speed in measure(Path(sys.argv[1]) if len(sys.argv) > 1 else None):
        print(speed.sentence())
