"""The outputs of fold and finish: a fold's slices, a query's rows, or the error (ADR 27).

    fold   = head body         frame.py, magic "CAUDALF2", index: class Folded
    result = head body         frame.py, magic "CAUDALR1", index: class Result
    body   = Arrow IPC streams at the offsets that the index states (mapped.py)

docs/formats/fold.md and result.md have examples.
"""

from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa

from caudal.errors import FormatError, QueryError
from caudal.formats import frame, mapped, streams
from caudal.formats.frame import MOST_REASON, Count, Reason

FOLD_MAGIC = b"CAUDALF2"
RESULT_MAGIC = b"CAUDALR1"
BATCH_BYTES = 4 << 20  # most bytes of a result's record batch, unless one row takes more

_PLACE = pa.struct([("file", pa.string()), ("line", pa.int64())])
REPORT = pa.schema(  # the columns of the rejects report
    [
        ("table", pa.string()),
        ("reason", pa.string()),  # null: rows that were kept, with bytes that are not UTF-8
        ("rows", pa.int64()),
        ("first", pa.list_(_PLACE)),
    ]
)


class Folded(msgspec.Struct, frozen=True, omit_defaults=True):
    """One partition of one fold, cut into slices for its readers; or the reason of its failure."""

    fold: str
    partition: Count
    slices: mapped.StageIndex | None = None
    error: Reason = ""

    def stage(self, key: str) -> mapped.StageIndex:
        """Return the slices. Raise QueryError if the fold failed. `key` is for messages."""
        if self.error:
            raise QueryError(self.error)
        if self.slices is None:
            raise FormatError(f"{key} holds neither slices nor the reason for their absence")
        return self.slices


class Whose(msgspec.Struct, frozen=True):
    """The identity of a result: a query of one run of a job."""

    job: str
    run: str
    query: str

    def __str__(self) -> str:
        return f"{self.query} of job {self.job}, run {self.run}"


_NO_ROWS = mapped.Span(0, 0, 0, "")  # an empty digest, which no stream has


class PlaceRecord(msgspec.Struct, frozen=True, array_like=True):
    """The raw record of a place that a row of the rejects report names in `first`."""

    row: Count
    place: Count
    record: str


class ResultHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """The header of a result: its query, and its rows or the reason of its failure."""

    query: str
    title: str
    rows: mapped.Span = _NO_ROWS
    job: str = ""
    run: str = ""
    error: Reason = ""
    records: tuple[PlaceRecord, ...] = ()  # of the rejects report (report_records.py)

    @property
    def whose(self) -> Whose:
        return Whose(self.job, self.run, self.query)

    def size(self, body: int) -> int:
        """Return the size of the object if its body, which is only the rows, begins at `body`."""
        return body + self.rows.length


def encode_fold(fold: str, partition: int, slices: Sequence[pa.Table]) -> bytes:
    body = bytearray()
    index = Folded(fold, partition, mapped.append_stage(body, slices))
    return b"".join((frame.encode(FOLD_MAGIC, index), body))


def encode_failed_fold(fold: str, partition: int, error: str) -> bytes:
    return frame.encode(FOLD_MAGIC, Folded(fold, partition, error=error[:MOST_REASON]))


def decode_fold(read: frame.Read, key: str) -> tuple[Folded, int]:
    """Return the header of a fold's output, and the offset of its body."""
    return frame.decode(read, FOLD_MAGIC, Folded, key)


def encode_result(
    whose: Whose, title: str, rows: pa.Table, records: Sequence[PlaceRecord] = ()
) -> bytes:
    span, body = mapped.stream_of(pa.Table.from_batches(_light(rows), rows.schema))
    index = ResultHeader(whose.query, title, span, whose.job, whose.run, records=tuple(records))
    return b"".join((frame.encode(RESULT_MAGIC, index), memoryview(body)))


def encode_failed_result(whose: Whose, title: str, error: str) -> bytes:
    index = ResultHeader(
        whose.query, title, job=whose.job, run=whose.run, error=error[:MOST_REASON]
    )
    return frame.encode(RESULT_MAGIC, index)


def _light(rows: pa.Table) -> list[pa.RecordBatch]:
    """Cut rows into batches of a few megabytes, so that a reader need not hold all of them."""
    return [part for batch in rows.to_batches() for part in _halved(batch)]


def _halved(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= BATCH_BYTES or batch.num_rows < 2:
        yield batch
        return
    half = batch.num_rows // 2
    parts = batch.slice(0, half), batch.slice(half)
    if all(part.nbytes == batch.nbytes for part in parts):  # all rows share the same buffers
        yield batch
        return
    for part in parts:
        yield from _halved(part)


def result_head(
    read: frame.Read, whose: Whose, key: str, most: int = frame.MOST_INDEX_BYTES
) -> bytes:
    """Return the checked head of a result. Raise FormatError if it belongs to another query or run.

    `most` bounds the size of the index, for a sender that is not trusted.
    """
    head = frame.read_head(read, RESULT_MAGIC, key, most)
    index = describe_result(head, key)
    if index.whose != whose:
        raise FormatError(f"{key} is a result of {index.whose}, not of {whose}")
    return head


def describe_result(head: bytes, key: str) -> ResultHeader:
    """Return the header in a result's head that was checked."""
    index = frame.decode_head(head, ResultHeader, key)
    if index.rows.offset != 0 or index.rows.length < 0:
        raise FormatError(f"{key} is damaged: its rows do not begin where its head ends")
    if index.error and index.rows != _NO_ROWS:
        raise FormatError(f"{key} is damaged: it holds both rows and an error")
    return index


def decode_result(
    data: bytes, key: str, terms: streams.Terms = streams.OWN
) -> tuple[ResultHeader, pa.Table]:
    """Decode a result in memory, which must have exactly its declared size. Raise QueryError if
    the query failed."""
    read = frame.of_bytes(data)
    head = frame.read_head(read, RESULT_MAGIC, key)
    index = describe_result(head, key)
    if index.size(len(head)) != len(data):
        raise FormatError(
            f"{key} is damaged: it has {len(data)} bytes, and should have {index.size(len(head))}"
        )
    if index.error:
        raise QueryError(index.error)
    return index, mapped.checked_rows(read, len(head), index.rows, key, terms)
