"""The batches of a table in waves: each wave is one frame of Spark.

Rules
1. The driver cuts files at true record ends, as every engine does (files/batches.py).
2. If executors reach a file, and a range of its bytes is a range of records, only the head of a
   batch travels: the file, the range, the digest. An executor reads the range and checks it.
3. Any other batch travels whole, compressed. A wave holds few of them, so the driver's memory does
   not grow with the files.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from caudal.files.batches import CutNote, Packing, cut_files
from caudal.files.inputs import InputFile
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.jobs.plan import TableMap

_WAVE_HEADS = 2_048
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
        index, body = frame.decode(
            frame.of_bytes(data), batch_format.MAGIC, batch_format.BatchHeader, "a batch"
        )
        whole = index.file not in shared
        if wave is not None and (wave.is_full or wave.whole is not whole):
            yield wave
            wave = None
        wave = wave or Wave(whole)
        wave.batches[number] = data if whole else data[:body]
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
    packing = Packing.NONE if shared & {file.name for file in files} else Packing.ALL
    cut = cut_files(
        one.table.name,
        files,
        batch_bytes,
        columns=one.cleaning.wanted.columns,
        packing=packing,
        noted=lambda note: notes.append(CutNote(note.reached)),
    )
    return enumerate(cut)
