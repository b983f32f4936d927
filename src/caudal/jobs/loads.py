"""Loads into datasets: what workers do besides computing. ADR 45 says why a load is a job.

Rules
1. A map of a load creates the files of its batch in the dataset, then its output, which names
   them. So whoever reads the output finds the files. Their names are derived from the load and the
   number of the batch: a map that runs twice creates the same files.
2. The finish of a load is the commit of its version (datasets/commits.py). If it runs again, it
   finds that its sources were brought, commits nothing, and gives the same result.
3. The commit starts from the version that the job was decided from. So it notices a vacuum that
   deleted its files, and the job fails: the client loads again, under other names.
4. Nothing is written into a dataset that was deleted meanwhile, except objects that are swept.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from caudal.datasets.cluster_place import is_deleted
from caudal.datasets.commits import (
    FilesVacuumedError,
    commit,
    create_dataset,
    find_head,
    open_contents,
)
from caudal.datasets.contents import Contents
from caudal.datasets.documents import BatchDone, DatasetHead
from caudal.datasets.files import create_stored
from caudal.datasets.keys import REJECTS
from caudal.datasets.load_version import Brought
from caudal.datasets.shelf import require_same
from caudal.datasets.sources import Offered
from caudal.errors import DataError, UsageError
from caudal.formats import loaded, outputs
from caudal.formats.keys import Task
from caudal.formats.loads import LOAD, JobLoad, LoadedBatch, LoadRequest, LoadSource
from caudal.jobs.inputs import table_members
from caudal.jobs.interfaces import Clock
from caudal.jobs.runs import JobRun
from caudal.store.below import StoreBelow
from caudal.store.port import Store

OPTION = "--dataset"  # of `caudal load`, for messages
VACUUMED = "a vacuum deleted files of this load: load again"
RESULT = pa.schema(
    [
        ("table", pa.string()),
        ("name", pa.string()),
        ("version", pa.int64()),  # that has the source's rows
        ("rows", pa.int64()),
        ("rejected", pa.int64()),
        ("loaded", pa.bool_()),  # by this load, not by another one
    ]
)


def store_batch(store: Store, job_run: JobRun, task: Task, data: bytes) -> bytes:
    """Create the files of a batch in its dataset; return the output of the map."""
    place = _place(job_run)
    found, files = loaded.taken_apart(data)
    below = StoreBelow(store, place.root)
    if files and find_head(below) is None:
        create_dataset(below, _head(job_run))
    stored = LoadedBatch(
        found.source,
        found.rows and create_stored(below, task.name, found.rows, files[found.rows.path]),
        found.rejects and create_stored(below, REJECTS, found.rejects, files[found.rejects.path]),
        found.rejected,
    )
    return loaded.without_files(data, stored)


def commit_load(store: Store, clock: Clock, job_run: JobRun) -> bytes:
    """Commit the version of a load; return its result."""
    place, request = _place(job_run), _request(job_run)
    below = StoreBelow(store, place.root)
    brought = Brought(
        place.load,
        [(offered(one), one.part) for one in request.sources],
        {table: _batches(store, job_run, table) for table in job_run.shape.tables},
    )
    with _own_errors():
        if is_deleted(store, place.root):
            raise UsageError(f"dataset {request.dataset} was deleted meanwhile: load again")
        contents = create_dataset(below, _head(job_run))
        cleanings = {one.name: one.cleaning for one in _head(job_run).tables if one.cleaning}
        name = job_run.job.request.application.name
        require_same(request.dataset, contents.head, name, cleanings, OPTION)
        base = open_contents(below, place.base)
        committed = commit(below, base, lambda newest: brought.version(newest, clock.now()))
    whose = outputs.Whose(job_run.job.id, job_run.job.run, LOAD)
    return outputs.encode_result(whose, "Loaded", _result(place.load, brought, committed))


def offered(source: LoadSource) -> Offered:
    return Offered(
        source.table, source.name, source.bytes, source.digest, source.shown, source.content
    )


@contextmanager
def _own_errors() -> Iterator[None]:
    """Turn errors that this load meets everywhere and every time into DataError."""
    try:
        yield
    except FilesVacuumedError:
        raise DataError(VACUUMED) from None
    except UsageError as error:
        raise DataError(str(error)) from None


def _batches(store: Store, job_run: JobRun, table: str) -> list[BatchDone]:
    """Return the batches of a table, checked against its end, in order."""
    sources = _request(job_run).sources
    done = []
    for member in table_members(store, job_run, table):
        index, found = member.index, member.index.loaded
        if found is None or not _is_of(sources, found.source, table):
            raise DataError(f"batch {index.batch} of table {table} names no source of its load")
        done.append(
            BatchDone(
                found.source, index.rows, found.rejected, index.repaired, found.rows, found.rejects
            )
        )
    return done


def _is_of(sources: Sequence[LoadSource], place: int, table: str) -> bool:
    return place < len(sources) and sources[place].table == table


def _result(load: str, brought: Brought, contents: Contents) -> pa.Table:
    """Return of each source which version has its rows, and what this load made of them."""
    held = {(one.table, one.digest): one.version for one in contents.sources}
    mine = {one.number for one in contents.history if one.load == load}
    rows = []
    for place, (source, _) in enumerate(brought.sources):
        version = held[source.identity]
        batches = [one for done in brought.batches.values() for one in done if one.source == place]
        counts = sum(one.rows for one in batches), sum(one.rejected for one in batches)
        rows.append((source.table, source.name, version, *counts, version in mine))
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=RESULT)


def _head(job_run: JobRun) -> DatasetHead:
    """Return what the dataset is, if this load makes it."""
    job, plan = job_run.job, job_run.split.load
    if plan is None:
        raise DataError(f"job {job.id} has no plan of a load")
    created = int(job.created * 1000)
    return DatasetHead(_place(job_run).dataset, job.request.application.name, created, plan.tables)


def _place(job_run: JobRun) -> JobLoad:
    if not job_run.job.load:
        raise DataError(f"job {job_run.job.id} is no load")
    return job_run.job.load


def _request(job_run: JobRun) -> LoadRequest:
    if not job_run.job.request.load:
        raise DataError(f"job {job_run.job.id} is no load")
    return job_run.job.request.load
