"""The outputs of fold and finish: a fold's slices, a query's rows, or why there are none (ADR 27).

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
BATCH_BYTES = 4 << 20  # of a result's record batch, unless one row takes more

_PLACE = pa.struct([("file", pa.string()), ("line", pa.int64())])
REPORT = pa.schema(  # of the rejects report
    [
        ("table", pa.string()),
        ("reason", pa.string()),  # null: rows that were kept, with bytes that are not UTF-8
        ("rows", pa.int64()),
        ("first", pa.list_(_PLACE)),
    ]
)


class Folded(msgspec.Struct, frozen=True, omit_defaults=True):
    """One partition of one fold, cut for its readers; or why it failed."""

    fold: str
    partition: Count
    slices: mapped.StageIndex | None = None
    error: Reason = ""

    def stage(self, key: str) -> mapped.StageIndex:
        """The slices, QueryError if the fold failed; `key` is the object's, for messages."""
        if self.error:
            raise QueryError(self.error)
        if self.slices is None:
            raise FormatError(f"{key} holds neither slices nor why there are none")
        return self.slices


class Whose(msgspec.Struct, frozen=True):
    """What a result answers: a query of one life of a job."""

    job: str
    run: str
    query: str

    def __str__(self) -> str:
        return f"{self.query} of job {self.job}, run {self.run}"


_NO_ROWS = mapped.Span(0, 0, 0, "")  # no stream has this digest: nobody takes it for one


class ResultHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rows that answer a query, or why it failed; and whose they are."""

    query: str
    title: str
    rows: mapped.Span = _NO_ROWS
    job: str = ""
    run: str = ""
    error: Reason = ""

    @property
    def whose(self) -> Whose:
        return Whose(self.job, self.run, self.query)

    def size(self, body: int) -> int:
        """The bytes of the whole object, whose body begins at `body`: the rows are all of it."""
        return body + self.rows.length


def encode_fold(fold: str, partition: int, slices: Sequence[pa.Table]) -> bytes:
    body = bytearray()
    index = Folded(fold, partition, mapped.append_stage(body, slices))
    return frame.encode(FOLD_MAGIC, index) + bytes(body)


def encode_failed_fold(fold: str, partition: int, error: str) -> bytes:
    return frame.encode(FOLD_MAGIC, Folded(fold, partition, error=error[:MOST_REASON]))


def decode_fold(read: frame.Read, key: str) -> tuple[Folded, int]:
    """What a fold's output says about itself, and where its body begins."""
    return frame.decode(read, FOLD_MAGIC, Folded, key)


def encode_result(whose: Whose, title: str, rows: pa.Table) -> bytes:
    body = bytearray()
    span = mapped.append_stream(body, pa.Table.from_batches(_light(rows), rows.schema))
    index = ResultHeader(whose.query, title, span, whose.job, whose.run)
    return frame.encode(RESULT_MAGIC, index) + bytes(body)


def encode_failed_result(whose: Whose, title: str, error: str) -> bytes:
    index = ResultHeader(
        whose.query, title, job=whose.job, run=whose.run, error=error[:MOST_REASON]
    )
    return frame.encode(RESULT_MAGIC, index)


def _light(rows: pa.Table) -> list[pa.RecordBatch]:
    """Rows in batches of a few megabytes, so that whoever reads them need not hold all."""
    return [part for batch in rows.to_batches() for part in _halved(batch)]


def _halved(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= BATCH_BYTES or batch.num_rows < 2:
        yield batch
        return
    half = batch.num_rows // 2
    parts = batch.slice(0, half), batch.slice(half)
    if all(part.nbytes == batch.nbytes for part in parts):  # all of it is shared by all rows
        yield batch
        return
    for part in parts:
        yield from _halved(part)


def result_head(
    read: frame.Read, whose: Whose, key: str, most: int = frame.MOST_INDEX_BYTES
) -> bytes:
    """The head of a result as it lies, checked: FormatError if it is another one's.

    `most` bounds its index, where whoever sends it is not to be believed.
    """
    head = frame.read_head(read, RESULT_MAGIC, key, most)
    index = describe_result(head, key)
    if index.whose != whose:
        raise FormatError(f"{key} is a result of {index.whose}, not of {whose}")
    return head


def describe_result(head: bytes, key: str) -> ResultHeader:
    """What a result's head says, which was checked."""
    index = frame.decode_head(head, ResultHeader, key)
    if index.rows.offset != 0 or index.rows.length < 0:
        raise FormatError(f"{key} is damaged: its rows do not begin where its head ends")
    if index.error and index.rows != _NO_ROWS:
        raise FormatError(f"{key} is damaged: it holds rows, and why there are none")
    return index


def decode_result(
    data: bytes, key: str, terms: streams.Terms = streams.OWN
) -> tuple[ResultHeader, pa.Table]:
    """A result that is in memory: all of it, and nothing behind it. QueryError if it failed."""
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
