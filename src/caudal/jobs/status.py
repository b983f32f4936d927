"""The progress of a job: per table, fold and query."""

from collections.abc import Iterable
from contextlib import suppress

from caudal.errors import FormatError, NotFoundError
from caudal.formats.replies import JobStatus, TableStatus
from caudal.jobs import objects
from caudal.jobs.facts import StoreFacts
from caudal.jobs.failed_queries import failed_queries
from caudal.jobs.intervals import IntervalSet
from caudal.jobs.readiness import Shape
from caudal.jobs.runs import JobRun, query_names, read_outcome
from caudal.jobs.shared_maps import facts_of
from caudal.sql.planner import only_filters
from caudal.store.port import Store

SMALL_BYTES = 32 << 10  # of all results in a status together


def status_of(store: Store, job_run: JobRun) -> JobStatus:
    """Return the status from the store. After a job's end its data may be gone, except results."""
    outcome, facts, shape = (
        read_outcome(store, job_run.keys),
        facts_of(store, job_run),
        job_run.shape,
    )
    running, finished = outcome is None, facts.finished()
    return JobStatus(
        run=job_run.job.run,
        outcome=outcome,
        tables={t: _table(t, shape, facts) for t in shape.tables} if running else {},
        folds={
            name: (len(facts.folded(name)), step.partitions)
            for name, step in (shape.folds.items() if running else ())
        },
        results=tuple(sorted(finished)),
        reads={name: tables_of(name, shape) for name in shape.finishes},
        options=job_run.job.request.options,
        queries=tuple(query_names(job_run)),
        previews=tuple(
            name for name in query_names(job_run) if only_filters(job_run.split.plan, name)
        ),
        growing=growing_queries(job_run),
        application=job_run.job.request.application.name,
        created=job_run.job.created,
        failed=failed_queries(store, job_run, finished),
    )


def small_results(store: Store, job_run: JobRun, names: Iterable[str]) -> dict[str, bytes]:
    """Return results that are small together. One that cannot be read is left out: who asks for it
    by its name is told why."""
    found, room = dict[str, bytes](), SMALL_BYTES
    for name in names:
        with suppress(NotFoundError, FormatError):
            result = objects.result(store, job_run.keys, name)
            size = result.index.size(len(result.head))
            if size <= room:
                found[name] = result.whole()
                room -= size
    return found


def growing_queries(job_run: JobRun) -> tuple[str, ...]:
    """Return the queries that have an answer so far (so_far.py)."""
    plan = job_run.split.plan
    return tuple(name for name in query_names(job_run) if plan.finish(name).grows)


def tables_of(query: str, shape: Shape) -> tuple[str, ...]:
    """Return the tables that must be complete before a query can be answered."""
    steps, tables = [shape.finishes[query]], set[str]()
    while steps:
        step = steps.pop()
        tables |= step.tables
        steps += [shape.folds[name] for name in step.folds]
    return tuple(table for table in shape.tables if table in tables)


def _table(table: str, shape: Shape, facts: StoreFacts) -> TableStatus:
    """Return the status of a table. Merged groups are counted without reading their members."""
    end, merged = facts.end(table), facts.merged(table)
    arrived = mapped = 0
    for group in facts.groups(table):
        size = _size_when_merged(group, merged, shape, end)
        arrived += size or len(facts.batches(table, group))
        mapped += size or len(facts.mapped(table, group))
    return TableStatus(end, arrived, mapped)


def _size_when_merged(group: int, merged: IntervalSet, shape: Shape, end: int | None) -> int | None:
    if group not in merged:
        return None
    return shape.group if end is None else shape.group_size(group, end)
