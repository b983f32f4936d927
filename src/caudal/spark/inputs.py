"""What maps read, in waves: each wave is one frame of Spark.

Rules
1. The driver cuts files at true record ends, as every engine does (files/batches.py).
2. If executors reach a file, and a range of its bytes is a range of records, only the head of a
   batch travels: the file, the range, the digest. An executor reads the range and checks it.
3. Any other batch travels whole, compressed. A wave holds few of them, so the driver's memory does
   not grow with the files.
4. Of a dataset, executors read groups of files from its store. The driver only lists them.
5. While Spark maps a wave, the driver cuts the next one, also that of the next table. It holds one
   wave in advance, no more.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from caudal.datasets.groups import group_files
from caudal.datasets.shelf import Shelf
from caudal.errors import UsageError
from caudal.files.batches import CutNote, cut_files
from caudal.files.inputs import InputFile
from caudal.files.ordered import one_ahead
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.file_groups import FileGroup, GroupFile
from caudal.formats.job import AskedDataset, AskedTable
from caudal.jobs.plan import TableMap
from caudal.run_options import SparkInputs
from caudal.spark.reach import reachable_files

_WAVE_HEADS = 512
_WAVE_BYTES = 32 << 20  # of batches that travel whole

SENT_SCHEMA = pa.schema([("number", pa.int64()), ("payload", pa.binary())])


@dataclass
class Wave:
    """Consecutive batches: only heads, or whole batches."""

    whole: bool
    batches: dict[int, bytes] = field(default_factory=dict)
    source_bytes: int = 0

    @property
    def is_full(self) -> bool:
        size = sum(map(len, self.batches.values())) if self.whole else 0
        return size >= _WAVE_BYTES or len(self.batches) >= _WAVE_HEADS

    def rows(self) -> pa.Table:
        columns = [list(self.batches), list(self.batches.values())]
        return pa.table(columns, schema=SENT_SCHEMA)


@dataclass(frozen=True)
class FileInputs:
    """Files of each table. `shared` names those of which executors read ranges."""

    tables: dict[str, list[InputFile]]
    shared: frozenset[str]
    batch_bytes: int

    @classmethod
    def of(
        cls,
        tables: dict[str, list[InputFile]],
        batch_bytes: int,
        inputs: SparkInputs,
        *,
        is_local: bool,
    ) -> "FileInputs":
        every = [file for some in tables.values() for file in some]
        return cls(tables, reachable_files(every, inputs, is_local=is_local), batch_bytes)

    def paths(self, table: str) -> dict[str, str]:
        return {file.name: file.place.identity for file in self.tables[table]}

    def waves(self, one: TableMap, notes: list[CutNote]) -> Iterator[Wave]:
        files = self.tables[one.table.name]
        return cut_waves(one, files, self.batch_bytes, self.shared, notes)


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
    tables: Sequence[TableMap], inputs: FileInputs | DatasetInputs, notes: dict[str, list[CutNote]]
) -> Generator[tuple[str, Wave | None]]:
    """Yield the waves of all tables with their tables, one after the other; a table without a wave
    comes once, with None. Close it when no more of them are wanted."""

    def cut() -> Iterator[tuple[str, Wave | None]]:
        for one in tables:
            name, is_empty = one.table.name, True
            for wave in inputs.waves(one, notes[name]):
                yield name, wave
                is_empty = False
            if is_empty:
                yield name, None

    return one_ahead(cut())


def cut_waves(
    one: TableMap,
    files: Sequence[InputFile],
    batch_bytes: int,
    shared: frozenset[str],
    notes: list[CutNote],
) -> Iterator[Wave]:
    """Cut the files of a table. `shared` names the files of which executors read ranges."""
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
