"""What the runs of all engines share: options, files, progress, parallel work kept in order."""

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeVar

from caudal.answers import TableProfile
from caudal.engine.reading import Cleaned, find_files
from caudal.errors import DataError, UsageError
from caudal.kernels.csv import DEFAULT_BATCH_BYTES
from caudal.model import RejectedRow, Table

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class Progress(Protocol):
    """Told how far a run has come. All calls come from the thread that called `run`."""

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None: ...

    def query(self, name: str, seconds: float) -> None: ...


class Silent:
    """Progress that nobody watches."""

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None: ...

    def query(self, name: str, seconds: float) -> None: ...


class Engine(StrEnum):
    """What executes queries."""

    EMBEDDED = "embedded"  # DuckDB over whole tables, in this process
    SPLIT = "split"  # scan, fold and finish over batches, as on a cluster, in this process


@dataclass(frozen=True)
class RunOptions:
    """How to run, as opposed to what to answer."""

    sentiment: str | None = None  # None: what the application says
    memory_limit: int | None = None  # bytes for the process; beyond it, data spills to disk
    batch_bytes: int = DEFAULT_BATCH_BYTES  # larger: fewer, longer steps and more memory
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    partitions: int = 4  # of the split engine's folds
    hints: bool = True  # let the split engine drop rows early; changes no answer
    strict: bool = False  # fail on the first rejected row
    profile: bool = False  # measure every operator (runs queries one after the other)
    reject_sink: Callable[[RejectedRow], None] | None = None


@dataclass(frozen=True)
class Sources:
    """Where the files are: a folder, and for some tables other files instead."""

    folder: Path
    overrides: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def files(self, table: Table) -> list[Path]:
        """The files of a table.

        A path given for it counts from the current directory, or, if nothing is there, from the
        folder. Where both have such a file, nothing is guessed; `./x.csv` always means the former.
        """
        given = self.overrides.get(table.name)
        if given is None:
            return find_files(self.folder, table.files, table.name)
        found = (path for pattern in given for path in self._given(pattern, table.name))
        return list(dict.fromkeys(found))

    def _given(self, pattern: str, table: str) -> list[Path]:
        if pattern.startswith(("./", "../", "/")):
            return find_files(Path(), [pattern], table)
        here, there = _found(Path(), pattern, table), _found(self.folder, pattern, table)
        if here and there and not here[0].samefile(there[0]):
            raise UsageError(
                f"{table}: both ./{here[0]} and {there[0]} could be meant: write one of these"
            )
        folder = Path() if Path(pattern).exists() else self.folder
        return here or there or find_files(folder, [pattern], table)


def _found(folder: Path, pattern: str, table: str) -> list[Path]:
    try:
        return find_files(folder, [pattern], table)
    except DataError:
        return []


def in_order(
    pool: ThreadPoolExecutor,
    work: Callable[[Item], Outcome],
    items: Iterable[Item],
    *,
    ahead: int,
) -> Generator[Outcome]:
    """The outcomes in the order of the items, at most `ahead` of them waiting or under way."""
    flying: deque[Future[Outcome]] = deque()
    try:
        for item in items:
            flying.append(pool.submit(work, item))
            if len(flying) > ahead:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()
    except Exception:  # not Ctrl-C: what is under way ends before anything else begins
        wait([future for future in flying if not future.cancel()])
        raise
    finally:
        for future in flying:
            future.cancel()


class ReadingProfile:
    """What reading a table takes, told to the progress piece by piece."""

    def __init__(self, table: str, files: Sequence[Path], progress: Progress) -> None:
        self._table = table
        self._progress = progress
        self._began = time.perf_counter()
        self._sizes = {str(path): path.stat().st_size for path in files}
        self._seen: dict[str, int] = {}  # file -> how far it has been read
        self._bytes = self._rows = self._rejected = 0

    def note(self, cleaned: Cleaned) -> None:
        self._seen[cleaned.piece.file] = cleaned.piece.position
        self._bytes += cleaned.piece.bytes
        self._rows += cleaned.accepted
        self._rejected += len(cleaned.rejected)
        self._progress.table(self._table, sum(self._seen.values()), sum(self._sizes.values()))

    def finished(self) -> TableProfile:
        total = sum(self._sizes.values())
        self._progress.table(self._table, total, total)
        seconds = time.perf_counter() - self._began
        return TableProfile(self._table, self._bytes, self._rows, self._rejected, seconds)
