"""The only way to read the stored objects of a job.

Rules
1. Every object is checked against its digest before it is returned (formats/). A FormatError names
   the key.
2. Every object names itself: its table, batch, fold and so on. If that does not match its key, it
   is refused like a damaged object.
3. Of a batch, only the head is checked here. The code that unpacks the records checks them
   (formats/batch.py, `view`), because it reads all of them anyway.
4. No other module above the store reads it (tests/tidy/test_stored_reads.py).

NotFoundError means that there is no such object.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from caudal.errors import FormatError, NotFoundError
from caudal.formats import batch as batch_format
from caudal.formats import file_groups as groups_format
from caudal.formats import frame, mapped, merged, outcomes, outputs
from caudal.formats import job as job_format
from caudal.formats.batch import BatchHeader
from caudal.formats.file_groups import FileGroup
from caudal.formats.job import Job
from caudal.formats.keys import Keys, Task, job_key
from caudal.formats.mapped import MappedReader, Span
from caudal.formats.merged import Merged
from caudal.formats.outcomes import End, Outcome
from caudal.formats.outputs import Folded, Whose
from caudal.formats.task_facts import ProcessSample, TaskFacts, decode_sample, decode_tasks
from caudal.jobs.stored_results import StoredResult
from caudal.store.keys import MAX_KEY_BYTES
from caudal.store.port import Store

_MOST_READ_BYTES = 64 << 20


def exists(store: Store, key: str) -> bool:
    try:
        store.read(key, 0, 1)
    except NotFoundError:
        return False
    return True


def mark_text(store: Store, key: str) -> str:
    """Return what a mark of the index says: the key of another mark. Its reader checks that."""
    return store.read(key, 0, MAX_KEY_BYTES).decode("ascii", "replace")


def job_bytes(store: Store, job_id: str) -> bytes:
    """Return job.json as stored bytes, to compare with a cached one; `job_of` decodes it."""
    return store.read(job_key(job_id))


def job_of(data: bytes, job_id: str) -> Job:
    key = job_key(job_id)
    job = job_format.decode(data, key)
    _check(key, job.id == job_id, f"job {job.id}")
    return job


def end(store: Store, keys: Keys, table: str) -> End:
    key = keys.end(table)
    return outcomes.decode_end(store.read(key), key)


def outcome(store: Store, keys: Keys) -> Outcome:
    return outcomes.decode_outcome(store.read(keys.outcome), keys.outcome)


def batch_head(store: Store, keys: Keys, table: str, number: int) -> BatchHeader:
    """Return the header of a batch."""
    key = keys.batch(table, number)
    found = batch_format.describe(partial(store.read, key), key)
    _check(key, (found.table, found.number) == (table, number), f"batch {found.number}")
    return found


def batch(store: Store, keys: Keys, table: str, number: int) -> bytes:
    """Return a whole batch, its records not checked (rule 3)."""
    return store.read(keys.batch(table, number))


def mapped_reader(store: Store, keys: Keys, table: str, number: int) -> MappedReader:
    key = keys.mapped(table, number)
    found = MappedReader(partial(store.read, key), key)
    same = (found.index.table, found.index.batch) == (table, number)
    _check(key, same, f"of batch {found.index.batch} of {found.index.table}")
    return found


def shared_reader(store: Store, key: str, table: str, source: str) -> MappedReader:
    """Return the reader of a map output over files of a dataset; `source` is their digest."""
    found = MappedReader(partial(store.read, key), key)
    same = (found.index.table, found.index.source_digest) == (table, source)
    _check(key, same, f"of other files, or of {found.index.table}")
    return found


def file_groups(store: Store, keys: Keys, table: str) -> tuple[FileGroup, ...]:
    """Return the files of a dataset that a job reads as a table."""
    key = keys.inputs(table)
    return groups_format.decode(store.read(key), key)


def merged_group(store: Store, keys: Keys, table: str, group: int) -> Merged:
    key = keys.output(Task("merge", table, group))
    found = merged.decode(store.read(key), key)
    same = (found.table, found.first) == (table, group * keys.group)
    _check(key, same, f"of {found.table} from batch {found.first} on")
    return found


def folded(store: Store, keys: Keys, fold: str, partition: int) -> tuple[Folded, int]:
    """Return the header of a fold's output, and the offset of its body."""
    key = keys.output(Task("fold", fold, partition))
    found, body = outputs.decode_fold(partial(store.read, key), key)
    same = (found.fold, found.partition) == (fold, partition)
    _check(key, same, f"of partition {found.partition} of {found.fold}")
    return found, body


def result(store: Store, keys: Keys, query: str) -> StoredResult:
    """Return a result without reading its rows."""
    key = keys.output(Task("finish", query))
    read = partial(store.read, key)
    return StoredResult(key, outputs.result_head(read, Whose(keys.job, keys.run, query), key), read)


def task_facts(store: Store, key: str) -> TaskFacts:
    return decode_tasks(store.read(key), key)


def process_sample(store: Store, key: str) -> ProcessSample:
    return decode_sample(store.read(key), key)


def streams(store: Store, key: str, body: int, spans: Sequence[Span]) -> Iterator[bytes]:
    """Read streams of one object. Adjacent streams are read together."""
    for together in _side_by_side(spans):
        first, last = together[0], together[-1]
        begin = body + first.offset
        data = store.read(key, begin, last.offset + last.length - first.offset)
        for span in together:
            yield mapped.read_stream(_from(data, begin), body, span, key)


def _side_by_side(spans: Sequence[Span]) -> Iterator[list[Span]]:
    """Group spans without a gap between them, no group larger than `_MOST_READ_BYTES`."""
    run: list[Span] = []
    for span in spans:
        if run and (
            span.offset != run[-1].offset + run[-1].length
            or span.offset + span.length - run[0].offset > _MOST_READ_BYTES
        ):
            yield run
            run = []
        run.append(span)
    if run:
        yield run


def _from(data: bytes, begin: int) -> frame.Read:
    """Return a range reader for an object of which `data` holds the bytes from `begin` on."""
    return lambda offset, length: data[offset - begin : offset - begin + length]


def _check(key: str, same: bool, found: str) -> None:
    if not same:
        raise FormatError(f"{key} holds something else ({found}): send the job again")
