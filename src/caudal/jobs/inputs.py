"""The inputs of a task, named by number and read by range.

Rules
1. Inputs are named by the table's end and the plan, never taken from a listing. A missing input is
   NotFoundError, never fewer rows.
2. Before anything of a table is believed, its merged objects must cover exactly the batches that
   its end names, and their digests must give the end's digest. Else the job fails: WrongEndError.
3. Streams come in the order of (batch) or (partition). Slices without rows are not read; if all
   are empty, one schema is. They are read when the task iterates them, never all at once.
4. Of a stage that failed nothing is read: QueryError, with the reason of the first batch or
   partition that has one.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from caudal.errors import NotFoundError, QueryError
from caudal.formats import merged
from caudal.formats.keys import REJECTS, Task
from caudal.formats.mapped import Span, StageIndex
from caudal.formats.outcomes import End, digest_of_digests
from caudal.jobs import objects
from caudal.jobs.facts import StoreFacts
from caudal.jobs.interfaces import InputPart, Inputs, JobError
from caudal.jobs.readiness import table_complete
from caudal.jobs.runs import JobRun, stage_of
from caudal.store.port import Store

_MOST_HINT_BATCHES = 4_096  # batches of the table that a hint is made from
_MOST_HINT_BYTES = 8 << 20


class WrongEndError(JobError):
    """The batches that arrived are not those that the client's end names. The job fails."""


def merge_group(store: Store, job_run: JobRun, task: Task) -> bytes:
    """Return the output of a merge: the indexes of the group's batches that lie before the end."""
    size = job_run.shape.group
    first = task.number * size
    end = StoreFacts(store, job_run.keys).end(task.name)
    last = first + size if end is None else min(first + size, end)
    members = []
    for number in range(first, last):
        found = objects.mapped_reader(store, job_run.keys, task.name, number)
        members.append(merged.MergedMember(found.index, found.body))
    return merged.encode(merged.Merged(task.name, first, tuple(members)))


def gather(store: Store, job_run: JobRun, task: Task) -> Inputs:
    """Return the inputs of a map, fold or finish."""
    if task.kind == "map":
        batch = InputPart(objects.batch(store, job_run.keys, task.name, task.number))
        return {**hint_inputs(store, job_run, task.name), task.name: [batch]}
    if task.kind == "finish" and task.name == REJECTS:
        return {
            table: list(_reports(store, job_run, table_members(store, job_run, table)))
            for table in job_run.shape.tables
        }
    gathered = _Gathered(store, job_run)
    if task.kind == "fold":
        fold = next(one for one in job_run.split.plan.folds if one.name == task.name)
        only = task.number if fold.partitions == "all" else None
        return {name: gathered.parts(name, only) for name in fold.inputs}
    stages = job_run.split.plan.finish(task.name).inputs.values()
    return {name: gathered.parts(name) for name in sorted(set(stages))}


def hint_inputs(store: Store, job_run: JobRun, table: str) -> Inputs:
    """Return complete stages of other tables that let the scans of this table drop rows.

    Complete stages never change, so a run caches them. Large stages are not gathered: a hint only
    saves work, and answers are the same without it.
    """
    names = job_run.hint_stages(table)
    for name in names:
        if name not in job_run.hints and (parts := _hint_parts(store, job_run, name)) is not None:
            job_run.hints[name] = parts
    return {name: job_run.hints[name] for name in names if job_run.hints.get(name)}


def _hint_parts(store: Store, job_run: JobRun, stage: str) -> list[InputPart] | None:
    """Return a stage's streams; an empty list if they are too large or the stage failed; None
    while its table is not complete."""
    scan, facts = stage_of(job_run, stage), StoreFacts(store, job_run.keys)
    end = facts.end(scan.table) if scan else None
    if scan is None or end is None:
        return None
    if end > _MOST_HINT_BATCHES:
        return []
    if not table_complete(scan.table, job_run.shape, facts):
        return None
    gathered = _Gathered(store, job_run)
    try:
        return list(gathered.parts(stage)) if gathered.size(stage) <= _MOST_HINT_BYTES else []
    except QueryError:  # it failed
        return []


def table_members(store: Store, job_run: JobRun, table: str) -> list[merged.MergedMember]:
    """Return the members of a complete table, checked against its end (rule 2)."""
    end = StoreFacts(store, job_run.keys).ending(table)
    if end is None:
        raise NotFoundError(f"table {table} has no end yet")
    members: list[merged.MergedMember] = []
    for group in range(job_run.shape.group_count(end.batches)):
        found = objects.merged_group(store, job_run.keys, table, group)
        check_coverage(found, end)
        members += found.members
    if digest_of_digests(one.index.source_digest for one in members) != end.digest:
        raise WrongEndError(
            f"table {table}: the batches that arrived are not those that the client's end names; "
            "send the files again under a new job"
        )
    return members


def check_coverage(group: merged.Merged, end: End) -> None:
    """Raise WrongEndError if the group covers more batches than the end names.

    That can happen to a group that was merged before the end was known.
    """
    if group.end > end.batches:
        raise WrongEndError(
            f"table {group.table}: the client ended it at {end.batches} batches, after "
            f"{group.end} had arrived; send it again under a new job"
        )


class _Gathered:
    """A reader of one task's inputs. It reads the members of each table once."""

    def __init__(self, store: Store, job_run: JobRun) -> None:
        self._store = store
        self._job_run = job_run
        self._members: dict[str, list[merged.MergedMember]] = {}

    def parts(self, stage: str, only: int | None = None) -> "_StoredParts":
        """The streams of a stage: of one partition, or all."""
        sources = list(self._sources(stage))
        spans = [
            (key, body, span)
            for key, body, index in sources
            for span in _chosen(index, only)
            if span.length
        ]
        if not spans and sources:
            key, body, index = sources[0]
            spans = [(key, body, index.empty)]
        return _StoredParts(self._store, spans)

    def size(self, stage: str) -> int:
        """Return the number of bytes of a stage's streams."""
        return sum(span.length for _, _, index in self._sources(stage) for span in index.slices)

    def _sources(self, stage: str) -> Iterable[tuple[str, int, StageIndex]]:
        scan = stage_of(self._job_run, stage)
        if scan is None:
            return self._folds(stage)
        if scan.table not in self._members:
            self._members[scan.table] = table_members(self._store, self._job_run, scan.table)
        return (
            (key, one.body, one.index.stage(stage, key))
            for one in self._members[scan.table]
            for key in [self._job_run.keys.mapped(scan.table, one.index.batch)]
        )

    def _folds(self, fold: str) -> Iterator[tuple[str, int, StageIndex]]:
        for number in range(self._job_run.shape.folds[fold].partitions):
            key = self._job_run.keys.output(Task("fold", fold, number))
            index, body = objects.folded(self._store, self._job_run.keys, fold, number)
            yield key, body, index.stage(key)


@dataclass(frozen=True, eq=False)
class _StoredParts(Collection[InputPart]):
    """Streams that are read from the store whenever they are iterated, a few at a time."""

    store: Store
    spans: Sequence[tuple[str, int, Span]]  # key, where its body begins, place in the body

    def __len__(self) -> int:
        return len(self.spans)

    def __contains__(self, part: object) -> bool:
        return any(part == one for one in self)

    def __iter__(self) -> Iterator[InputPart]:
        for (key, body), together in groupby(self.spans, key=itemgetter(0, 1)):
            for data in objects.streams(self.store, key, body, [one for _, _, one in together]):
                yield InputPart(data)


def size_of(parts: Collection[InputPart]) -> int:
    """Return how many bytes an input takes, without reading it if it lies in the store."""
    if isinstance(parts, _StoredParts):
        return sum(span.length for _, _, span in parts.spans)
    return sum(len(part.data) for part in parts)


def _chosen(index: StageIndex, only: int | None) -> Sequence[Span]:
    if only is None:
        return index.slices
    return [index.slices[min(only, len(index.slices) - 1)]]


def _reports(
    store: Store, job_run: JobRun, members: Iterable[merged.MergedMember]
) -> Iterator[InputPart]:
    for one in members:
        index = one.index
        if index.rejects.rows or index.repaired:
            key = job_run.keys.mapped(index.table, index.batch)
            for data in objects.streams(store, key, one.body, [index.rejects]):
                yield InputPart(data, index.file, index.repaired)
