"""Compaction and vacuum of a cluster's dataset: the one task of a job, done by a worker."""

import pyarrow as pa

from caudal.datasets.cluster_place import is_deleted
from caudal.datasets.commits import open_contents
from caudal.datasets.compaction import compact
from caudal.datasets.contents import Contents
from caudal.datasets.vacuum import vacuum
from caudal.errors import DataError, NotFoundError
from caudal.formats import outputs
from caudal.formats.loads import UPKEEP
from caudal.jobs.interfaces import Clock, MayGoOn, StoppedError
from caudal.jobs.runs import JobRun
from caudal.store.below import StoreBelow
from caudal.store.port import Store

RESULT = pa.schema(
    [
        ("version", pa.int64()),  # the newest one
        ("before", pa.int64()),  # files before
        ("after", pa.int64()),
        ("deleted", pa.int64()),  # files that a vacuum deleted, and their bytes
        ("bytes", pa.int64()),
    ]
)


def do_upkeep(store: Store, clock: Clock, job_run: JobRun, beat: MayGoOn) -> bytes:
    """Compact or vacuum the dataset of a job; return the result."""
    job = job_run.job
    if not job.load or not job.request.upkeep:
        raise DataError(f"job {job.id} has no dataset to take care of")
    request, below = job.request.upkeep, StoreBelow(store, job.load.root)
    try:
        before = open_contents(below)
    except NotFoundError:
        before = None
    if before is None or is_deleted(store, job.load.root):
        raise DataError(f"dataset {request.dataset} was deleted meanwhile")
    after, deleted, size = before, 0, 0
    if request.compact_bytes is not None:
        after = compact(below, clock.now(), request.compact_bytes, lambda: _go_on(beat))
    if request.keep_seconds is not None:
        report = vacuum(below, clock.now(), request.keep_seconds, request.grace_seconds)
        after, deleted, size = report.contents, report.files, report.bytes
    row = (after.number, _files(before), _files(after), deleted, size)
    whose = outputs.Whose(job.id, job.run, UPKEEP)
    columns = [[value] for value in row]
    return outputs.encode_result(whose, "Upkeep", pa.table(columns, schema=RESULT))


def _go_on(beat: MayGoOn) -> None:
    if not beat():
        raise StoppedError("it was stopped")


def _files(contents: Contents) -> int:
    return sum(map(len, contents.tables.values()))
