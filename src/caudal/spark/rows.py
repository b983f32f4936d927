"""Rows that travel through Spark: the slices of outputs, cut into parts.

Rules
1. A row is a part of one stream: (readers, stage, slice, number, part, payload). `number` is the
   batch of a scan or the partition of a fold. `readers` are the addresses of the tasks that read
   the stream (routes.py), so that a stream is kept once however many tasks read it.
2. A part has at most `PART_BYTES`, so that no batch of Arrow in Spark becomes large.
3. A row whose slice is `FOR_DRIVER` is read by the driver: the head of an output without its
   slices, the result of a query, an error, or measurements. `stage` says which. Small slices are
   sent to the driver with them (frames.py).
4. The streams of a task are sorted by (stage, number, slice), in whatever order rows arrive. An
   output of partition 0 has a stream for every slice, also for empty ones, so that each reader
   knows the columns.
"""

import itertools
import operator
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from caudal.errors import FormatError
from caudal.formats import mapped, outputs
from caudal.formats.frame import of_bytes
from caudal.jobs.interfaces import InputPart
from caudal.spark.routes import Routes

PART_BYTES = 4 << 20
FOR_DRIVER = -1
ERROR, PROFILE = "!error", "!profile"  # no name of a table, fold or query
_ROWS_BYTES = 16 << 20  # payload of one batch that is given to Spark
_IN_MEMORY = 64 << 20  # inputs of a task beyond this are kept in a file

SPARK_SCHEMA = (
    "readers array<int>, stage string, slice int, number bigint, part int, payload binary"
)
SCHEMA = pa.schema(
    [
        ("readers", pa.list_(pa.int32())),
        ("stage", pa.string()),
        ("slice", pa.int32()),
        ("number", pa.int64()),
        ("part", pa.int32()),
        ("payload", pa.binary()),
    ]
)


class SliceRow(NamedTuple):
    """One part of the stream of a slice."""

    readers: list[int]
    stage: str
    slice: int
    number: int
    part: int
    payload: bytes


def mapped_rows(data: bytes, number: int, routes: Routes) -> Iterator[SliceRow]:
    """Cut the output of the map of a batch."""
    found = mapped.open_bytes(data)
    index, last = found.index, found.index.reported[-1]
    head = data[: found.body + last.offset + last.length]
    yield from driver_rows(index.table, number, head)
    for stage, slices in index.stages.items():
        yield from _stage_rows(data, found.body, (stage, number), slices, routes)


def folded_rows(data: bytes, routes: Routes) -> Iterator[SliceRow]:
    """Cut the output of a fold."""
    found, body = outputs.decode_fold(of_bytes(data), "a fold")
    yield from driver_rows(found.fold, found.partition, data[:body])
    if found.slices is not None:
        of = found.fold, found.partition
        yield from _stage_rows(data, body, of, found.slices, routes, describes=of[1] == 0)


def _stage_rows(
    data: bytes,
    body: int,
    of: tuple[str, int],
    found: mapped.StageIndex,
    routes: Routes,
    *,
    describes: bool = False,
) -> Iterator[SliceRow]:
    stage, number = of
    for place, span in enumerate(found.slices):
        readers = routes.readers(stage, place, len(found.slices))
        chosen = span if span.length or not describes else found.empty
        begin = body + chosen.offset
        if readers and chosen.length:
            stream = data[begin : begin + chosen.length]
            yield from _parts(readers, stage, place, number, stream)


def driver_rows(stage: str, number: int, data: bytes) -> Iterator[SliceRow]:
    """Cut bytes that the driver reads."""
    return _parts([], stage, FOR_DRIVER, number, data)


def _parts(
    readers: list[int], stage: str, place: int, number: int, data: bytes
) -> Iterator[SliceRow]:
    for part, begin in enumerate(range(0, max(len(data), 1), PART_BYTES)):
        yield SliceRow(readers, stage, place, number, part, data[begin : begin + PART_BYTES])


def record_batches(rows: Iterable[SliceRow]) -> Iterator[pa.RecordBatch]:
    """Return rows as batches of bounded size."""
    held: list[SliceRow] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row.payload)
        if size >= _ROWS_BYTES:
            yield _record_batch(held)
            held, size = [], 0
    if held:
        yield _record_batch(held)


def _record_batch(rows: list[SliceRow]) -> pa.RecordBatch:
    columns = [
        pa.array(values, kind)
        for values, kind in zip(zip(*rows, strict=True), SCHEMA.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


class _Place(NamedTuple):
    """A part in the file of its task."""

    stage: str
    number: int
    slice: int
    part: int
    offset: int
    length: int


_STREAM = operator.itemgetter(0, 1, 2)


@dataclass
class TaskRows:
    """The rows of one task, in a file if they are many. They may be larger than memory."""

    folder: Path | None = None
    most_bytes: int = _IN_MEMORY
    _places: list[_Place] = field(default_factory=list)
    _size: int = 0

    def __post_init__(self) -> None:
        folder = str(self.folder) if self.folder else None
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(self.most_bytes, dir=folder)  # noqa: SIM115

    def add(self, batch: "pa.RecordBatch | pa.Table") -> None:
        """Keep the rows of a batch."""
        names = "stage", "number", "slice", "part"
        values = [batch.column(name).to_pylist() for name in names]
        self._file.seek(self._size)  # streams may have been read meanwhile
        for stage, number, place, part, payload in zip(
            *values, _values(batch.column("payload")), strict=True
        ):
            data = payload.as_buffer()
            if data.size:
                self._file.write(data)
            self._places.append(_Place(stage, number, place, part, self._size, data.size))
            self._size += data.size

    def streams(self) -> Mapping[str, "StreamParts"]:
        """Return the streams by stage, in the order of rule 4."""
        ordered = sorted(self._places)
        found: dict[str, list[list[_Place]]] = {}
        for (stage, _, _), parts in itertools.groupby(ordered, key=_STREAM):
            found.setdefault(stage, []).append(_checked(list(parts)))
        return {stage: StreamParts(self._file, streams) for stage, streams in found.items()}

    def numbered(self) -> dict[tuple[str, int], bytes]:
        """Return each stream by stage and number, for rows that have one slice."""
        found: dict[tuple[str, int], bytes] = {}
        for parts in (one for streams in self.streams().values() for one in streams.found):
            stream = StreamParts(self._file, [parts])
            found[parts[0].stage, parts[0].number] = next(iter(stream)).data
        return found

    def close(self) -> None:
        self._file.close()


def _values(column: Any) -> Iterator[Any]:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return itertools.chain.from_iterable(chunks)


def _checked(parts: list[_Place]) -> list[_Place]:
    """Raise FormatError if a part of a stream is missing or comes twice."""
    if [one.part for one in parts] != list(range(len(parts))):
        stage, number, place = _STREAM(parts[0])
        raise FormatError(f"slice {place} of {stage} {number} did not arrive whole: run it again")
    return parts


@dataclass(frozen=True, eq=False)
class StreamParts(Collection[InputPart]):
    """Streams of one stage, read from the file when they are iterated."""

    file: IO[bytes]
    found: list[list[_Place]]

    def __len__(self) -> int:
        return len(self.found)

    def __contains__(self, part: object) -> bool:
        return any(part == one for one in self)

    def __iter__(self) -> Iterator[InputPart]:
        for parts in self.found:
            yield InputPart(b"".join(map(self._read, parts)))

    def _read(self, place: _Place) -> bytes:
        self.file.seek(place.offset)
        return self.file.read(place.length)
