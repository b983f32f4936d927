"""What maps read, in waves: each wave is one frame of Spark.

Rules
1. The driver cuts files at true record ends, as every engine does (files/batches.py).
2. If executors reach a file, and a range of its bytes is a range of records, only the head of a
   batch travels: the file, the range, the digest. An executor reads the range and checks it.
3. Any other batch travels whole, compressed. A wave holds few of them, so the driver's memory does
   not grow with the files.
4. Of a dataset, executors read groups of files from its store. The driver only lists them.
5. While Spark maps a wave, the driver cuts on, also the next table. All that it has cut meanwhile
   is the next wave. A wave costs an action of Spark. So one of ranges waits until its table is cut,
   until it is large, or for a second: a table has few waves, and executors wait for slow files that
   long at most. The driver holds a bounded number of batches in advance.
"""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

import msgspec
import pyarrow as pa

from caudal.datasets.groups import group_files
from caudal.datasets.shelf import Shelf
from caudal.errors import UsageError
from caudal.files.batches import CutNote, cut_files
from caudal.files.inputs import InputFile
from caudal.files.ordered import Pile
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.file_groups import FileGroup, GroupFile
from caudal.formats.job import AskedDataset, AskedTable
from caudal.jobs.plan import TableMap
from caudal.run_options import USUAL_BATCH_BYTES, SparkInputs
from caudal.spark.reach import reachable_files

_WAVE_BYTES = 32 << 20  # of batches that travel whole
_HEAD_BYTES = 64 << 10  # what a head counts as: a wave has at most 512
_PARTS = 64  # in which a wave is cut
_WORTH_BYTES = 1 << 30  # of ranges: such a wave does not wait for more
_WORTH_SECONDS = 1.0  # nor one whose first part was made so long ago
_MOST_BATCH_BYTES = 24 << 20
_BATCHES_PER_CORE = 4  # at least, unless they would be small
_SHARE_OF_MEMORY = 32  # of a task, which holds columns of the records too

SENT_SCHEMA = pa.schema([("number", pa.int64()), ("payload", pa.binary())])


@dataclass
class Wave:
    """Consecutive batches: only heads, or whole batches."""

    whole: bool
    batches: dict[int, bytes] = field(default_factory=dict)
    source_bytes: int = 0
    made: float = 0.0  # when its cutting ended, for the first of its parts

    @property
    def size(self) -> int:
        """Return how much of the driver's memory it counts for."""
        if self.whole:
            return sum(map(len, self.batches.values()))
        return _HEAD_BYTES * len(self.batches)

    @property
    def is_full(self) -> bool:
        """Return whether it is large enough for a part of a wave."""
        return self.size >= _WAVE_BYTES // _PARTS

    def add(self, other: "Wave") -> None:
        self.batches.update(other.batches)
        self.source_bytes += other.source_bytes

    def rows(self) -> pa.Table:
        columns = [list(self.batches), list(self.batches.values())]
        return pa.table(columns, schema=SENT_SCHEMA)


@dataclass(frozen=True)
class Batching:
    """How large batches are: as `given`, or as it suits so many cores with so much memory for a
    task."""

    given: int | None = None
    parallelism: int = 1
    memory_bytes: int = 1 << 30

    def batch_bytes(self, size: int) -> int:
        """Return the size of batches of files of so many bytes, of which executors read ranges. The
        steps of a batch cost time of their own, so batches are large where there are enough."""
        if self.given is not None:
            return self.given
        most = min(_MOST_BATCH_BYTES, self.memory_bytes // _SHARE_OF_MEMORY)
        return max(USUAL_BATCH_BYTES, min(most, size // (_BATCHES_PER_CORE * self.parallelism)))

    @property
    def sent_bytes(self) -> int:
        """Return the size of batches that travel."""
        return self.given or USUAL_BATCH_BYTES


@dataclass(frozen=True)
class FileInputs:
    """Files of each table. `shared` names those of which executors read ranges."""

    tables: dict[str, list[InputFile]]
    shared: frozenset[str]
    batching: Batching = Batching()

    @classmethod
    def of(
        cls,
        tables: dict[str, list[InputFile]],
        batching: Batching,
        inputs: SparkInputs,
        *,
        is_local: bool,
    ) -> "FileInputs":
        every = [file for some in tables.values() for file in some]
        return cls(tables, reachable_files(every, inputs, is_local=is_local), batching)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The bytes of each table."""
        return {name: sum(file.size for file in files) for name, files in self.tables.items()}

    def paths(self, table: str) -> dict[str, str]:
        return {file.name: file.place.identity for file in self.tables[table]}

    def waves(self, one: TableMap, notes: list[CutNote]) -> Iterator[Wave]:
        files = self.tables[one.table.name]
        is_shared = all(file.name in self.shared for file in files)
        chosen = (
            self.batching.batch_bytes(self.sizes[one.table.name])
            if is_shared
            else self.batching.sent_bytes
        )
        return cut_waves(one, files, chosen, self.shared, notes)


@dataclass(frozen=True)
class DatasetInputs:
    """A version of a dataset that executors reach."""

    shelf: Shelf

    @property
    def place(self) -> str:
        """Return where executors open it."""
        folder = self.shelf.folder
        return self.shelf.place if folder is None else str(folder.absolute())

    @property
    def asked(self) -> AskedDataset:
        contents = self.shelf.contents
        tables = tuple(AskedTable(one.name, one.columns) for one in contents.head.tables)
        return AskedDataset(self.shelf.place, "dataset/", contents.number, tables)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The bytes of each table."""
        tables = self.shelf.contents.tables
        return {name: sum(file.bytes for file in files) for name, files in tables.items()}

    def require_reach(self, inputs: SparkInputs, *, is_local: bool) -> None:
        """Raise UsageError if executors are not expected to see its files."""
        if inputs is SparkInputs.SENT:
            raise UsageError("executors read a dataset themselves: leave --inputs sent out")
        if self.shelf.folder is not None and not is_local and inputs is not SparkInputs.SHARED:
            raise UsageError(
                f"{self.shelf.place} is a folder of this machine: if all executors see it at the "
                "same path, add --inputs shared; else put the dataset on s3://"
            )

    def waves(self, one: TableMap, notes: list[CutNote]) -> Iterator[Wave]:
        wave, reached = Wave(whole=False), 0
        for number, group in enumerate(group_files(self.shelf.contents.tables[one.table.name])):
            if wave.is_full:
                yield wave
                wave = Wave(whole=False)
            files = FileGroup(tuple(GroupFile(f.path, f.bytes, f.digest) for f in group))
            wave.batches[number] = msgspec.json.encode(files)
            wave.source_bytes += files.bytes
            reached += files.bytes
            notes.append(CutNote(reached))
        if wave.batches:
            yield wave


def waves_ahead(
    tables: Sequence[TableMap],
    inputs: FileInputs | DatasetInputs,
    notes: dict[str, list[CutNote]],
    clock: Callable[[], float] = time.monotonic,
) -> Generator[tuple[str, Wave | None]]:
    """Yield the waves of all tables with their tables, one after the other; the end of each table
    comes as None. Close it when no more of them are wanted."""

    def cut() -> Iterator[tuple[str, Wave | None]]:
        for one in tables:
            name = one.table.name
            for wave in inputs.waves(one, notes[name]):
                wave.made = clock()
                yield name, wave
            yield name, None

    def enough(parts: Sequence[tuple[str, Wave | None]]) -> int:
        return enough_parts(parts, clock())

    pile = Pile(cut(), lambda made: made[1].size if made[1] else 0, _WAVE_BYTES, enough)
    with closing(pile.taken()) as taken:
        for parts in taken:
            yield from _joined(parts)


def enough_parts(parts: Sequence[tuple[str, Wave | None]], now: float) -> int:
    """Return how many parts are worth mapping now although more may come: those of the first table
    with its end; or all, if they are large, or have waited, or travel whole; or none."""
    size = 0
    for count, (_, wave) in enumerate(parts, 1):
        if wave is None:
            return count
        is_old = now - wave.made >= _WORTH_SECONDS
        size += _WORTH_BYTES if wave.whole or is_old else wave.source_bytes
    return len(parts) if size >= _WORTH_BYTES else 0


def _joined(parts: Iterable[tuple[str, Wave | None]]) -> Iterator[tuple[str, Wave | None]]:
    """Join the waves of one table that are of one kind and follow each other."""
    for (name, _), some in groupby(parts, lambda part: (part[0], part[1] and part[1].whole)):
        waves = [wave for _, wave in some if wave is not None]
        for more in waves[1:]:
            waves[0].add(more)
        yield name, waves[0] if waves else None


def cut_waves(
    one: TableMap,
    files: Sequence[InputFile],
    batch_bytes: int,
    shared: frozenset[str],
    notes: list[CutNote],
) -> Iterator[Wave]:
    """Cut the files of a table into parts of waves. Executors read ranges of `shared` files."""
    wave: Wave | None = None
    for number, data in _numbered(one, files, batch_bytes, shared, notes):
        index = batch_format.describe(frame.of_bytes(data), "a batch")
        whole = index.file not in shared
        if wave is not None and (wave.is_full or wave.whole is not whole):
            yield wave
            wave = None
        wave = wave or Wave(whole)
        wave.batches[number] = data
        wave.source_bytes += index.bytes
    if wave is not None:
        yield wave


def _numbered(
    one: TableMap,
    files: Sequence[InputFile],
    batch_bytes: int,
    shared: frozenset[str],
    notes: list[CutNote],
) -> Iterable[tuple[int, bytes]]:
    cut = cut_files(
        one.table.name,
        files,
        batch_bytes,
        columns=one.cleaning.wanted.columns,
        noted=lambda note: notes.append(CutNote(note.reached)),
        bare=shared,
    )
    return enumerate(cut)
