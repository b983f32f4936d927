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
5. A shared map output may have been swept and made again since it was merged, in other bytes or
   for this job alone, but with the same rows. Then its own index says where they are.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from caudal.errors import FormatError, NotFoundError, QueryError
from caudal.formats import merged
from caudal.formats.keys import REJECTS, Task
from caudal.formats.mapped import MappedReader, Span, StageIndex, read_rows, record_texts
from caudal.formats.outcomes import End, digest_of_digests
from caudal.jobs import objects
from caudal.jobs.interfaces import InputPart, Inputs, JobError
from caudal.jobs.readiness import table_complete
from caudal.jobs.runs import JobRun, stage_of
from caudal.jobs.shared_maps import (
    facts_of,
    gather_files,
    is_shared,
    member_key,
    member_of,
    open_again,
    open_mapped,
)
from caudal.store.port import Store

_EMPTY = -1
_MOST_HINT_BATCHES = 4_096  # batches of the table that a hint is made from
_MOST_HINT_BYTES = 8 << 20


class WrongEndError(JobError):
    """The batches that arrived are not those that the client's end names. The job fails."""


def merge_group(store: Store, job_run: JobRun, task: Task) -> bytes:
    """Return the output of a merge: the indexes of the group's batches that lie before the end."""
    size = job_run.shape.group
    first = task.number * size
    end = facts_of(store, job_run).end(task.name)
    last = first + size if end is None else min(first + size, end)
    members = []
    for number in range(first, last):
        found = open_mapped(store, job_run, task.name, number)
        members.append(member_of(job_run, found, number))
    return merged.encode(merged.Merged(task.name, first, tuple(members)))


def gather(store: Store, job_run: JobRun, task: Task) -> Inputs:
    """Return the inputs of a map, fold or finish."""
    if is_shared(job_run, task):
        return {task.name: gather_files(store, job_run, task)}
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
    scan, facts = stage_of(job_run, stage), facts_of(store, job_run)
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
    end = facts_of(store, job_run).ending(table)
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
        places = [
            _SlicePlace(source, number)
            for source in sources
            for number in _chosen(source.index, only)
            if source.index.slices[number].length
        ]
        if not places and sources:
            places = [_SlicePlace(sources[0], _EMPTY)]
        return _StoredParts(self._store, places)

    def size(self, stage: str) -> int:
        """Return the number of bytes of a stage's streams."""
        return sum(span.length for one in self._sources(stage) for span in one.index.slices)

    def _sources(self, stage: str) -> "Iterable[_Source]":
        scan = stage_of(self._job_run, stage)
        if scan is None:
            return self._folds(stage)
        if scan.table not in self._members:
            self._members[scan.table] = table_members(self._store, self._job_run, scan.table)
        return (self._source(stage, one) for one in self._members[scan.table])

    def _source(self, stage: str, member: merged.MergedMember) -> "_Source":
        key = member_key(self._store, self._job_run, member)
        again = partial(open_again, self._store, self._job_run, member.index)
        return _Source(key, member.body, member.index.stage(stage, key), stage, again)

    def _folds(self, fold: str) -> "Iterator[_Source]":
        for number in range(self._job_run.shape.folds[fold].partitions):
            key = self._job_run.keys.output(Task("fold", fold, number))
            index, body = objects.folded(self._store, self._job_run.keys, fold, number)
            yield _Source(key, body, index.stage(key))


@dataclass(frozen=True)
class _Source:
    """A stage in one object: where the object's body begins, and where its slices are.

    `again` opens a map output that was made again since; it returns None if there is none such.
    """

    key: str
    body: int
    index: StageIndex
    stage: str = ""
    again: Callable[[], MappedReader | None] = lambda: None

    def span(self, number: int) -> Span:
        return self.index.empty if number == _EMPTY else self.index.slices[number]


class _SlicePlace(NamedTuple):
    """A slice of a source; `_EMPTY` stands for its schema."""

    source: _Source
    number: int


@dataclass(frozen=True, eq=False)
class _StoredParts(Collection[InputPart]):
    """Streams that are read from the store whenever they are iterated, a few at a time."""

    store: Store
    places: Sequence[_SlicePlace]

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, part: object) -> bool:
        return any(part == one for one in self)

    def __iter__(self) -> Iterator[InputPart]:
        for source, together in groupby(self.places, key=itemgetter(0)):
            numbers = [place.number for place in together]
            if not source.stage:
                yield from map(InputPart, self._streams(source, numbers))
                continue
            try:
                found = list(self._streams(source, numbers))
            except (FormatError, NotFoundError):
                found = self._streams_again(source, numbers)
            yield from map(InputPart, found)

    def _streams(self, source: _Source, numbers: Sequence[int]) -> Iterator[bytes]:
        spans = [source.span(number) for number in numbers]
        return objects.streams(self.store, source.key, source.body, spans)

    def _streams_again(self, source: _Source, numbers: Sequence[int]) -> list[bytes]:
        """Read by the object's own index, if it was made again (rule 5); else raise."""
        made = source.again()
        if made is None:
            return list(self._streams(source, numbers))
        there = replace(
            source, key=made.key, body=made.body, index=made.index.stage(source.stage, made.key)
        )
        return list(self._streams(there, numbers))


def size_of(parts: Collection[InputPart]) -> int:
    """Return how many bytes an input takes, without reading it if it lies in the store."""
    if isinstance(parts, _StoredParts):
        return sum(place.source.span(place.number).length for place in parts.places)
    return sum(len(part.data) for part in parts)


def _chosen(index: StageIndex, only: int | None) -> Sequence[int]:
    """Return the numbers of the slices to read."""
    if only is None:
        return range(len(index.slices))
    return [min(only, len(index.slices) - 1)]


def _reports(
    store: Store, job_run: JobRun, members: Iterable[merged.MergedMember]
) -> Iterator[InputPart]:
    for one in members:
        index = one.index
        if index.rejects.rows or index.repaired:
            key = member_key(store, job_run, one)
            data, *texts = objects.streams(store, key, one.body, index.reported)
            records = record_texts(read_rows(texts[0], key), key) if texts else {}
            yield InputPart(data, index.file, index.repaired, records)
