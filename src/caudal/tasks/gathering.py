"""The inputs of a task, named by number and read by range.

Rules
1. Inputs are named by the table's end and the plan, never taken from a listing. A missing input is
   NotFoundError, never fewer rows.
2. Before anything of a table is believed, its merged objects must cover exactly the batches that
   its end names, and their digests must give the end's digest. Else the job fails: WrongEndError.
3. Streams come in the order of (batch) or (partition). Slices without rows are not read; if all
   are empty, one schema is.
"""

from collections.abc import Iterable, Iterator, Sequence

from caudal.core.tasks import REJECTS, Task
from caudal.errors import NotFoundError
from caudal.formats import frame, mapped, merged, outputs
from caudal.formats.ending import End, digest_of_digests
from caudal.formats.mapped import Span, StageIndex
from caudal.store.port import Store
from caudal.tasks.facts import StoreFacts
from caudal.tasks.life import Life, stage_of
from caudal.tasks.ports import Inputs, JobError, Part


class WrongEndError(JobError):
    """What arrived is not what the client's end names: the job fails."""


def merge_group(store: Store, life: Life, task: Task) -> bytes:
    """The output of a merge: the indexes of the members that the end leaves in the group."""
    size = life.shape.group
    first = task.number * size
    end = StoreFacts(store, life.keys).end(task.name)
    last = first + size if end is None else min(first + size, end)
    members = []
    for number in range(first, last):
        key = life.keys.mapped(task.name, number)
        index, body = frame.decode(_reader(store, key), mapped.MAGIC, mapped.Index, key)
        members.append(merged.Member(index, body))
    return merged.encode(merged.Merged(task.name, first, tuple(members)))


def gather(store: Store, life: Life, task: Task) -> Inputs:
    """The inputs of a map, fold or finish."""
    if task.kind == "map":
        return {task.name: [Part(store.read(life.keys.batch(task.name, task.number)))]}
    if task.kind == "finish" and task.name == REJECTS:
        return {
            table: list(_reports(store, life, table_members(store, life, table)))
            for table in life.shape.tables
        }
    gathered = _Gathered(store, life)
    if task.kind == "fold":
        fold = next(one for one in life.split.plan.folds if one.name == task.name)
        only = task.number if fold.partitions == "all" else None
        return {name: gathered.parts(name, only) for name in fold.inputs}
    stages = life.split.plan.finish(task.name).inputs.values()
    return {name: gathered.parts(name) for name in sorted(set(stages))}


def table_members(store: Store, life: Life, table: str) -> list[merged.Member]:
    """The members of a complete table, checked against its end (rule 2)."""
    end = StoreFacts(store, life.keys).ending(table)
    if end is None:
        raise NotFoundError(f"table {table} has no end yet")
    members: list[merged.Member] = []
    for group in range(life.shape.group_count(end.batches)):
        key = life.keys.output(Task("merge", table, group))
        found = merged.decode(store.read(key), key)
        check_coverage(found, end)
        members += found.members
    if digest_of_digests(one.index.source_digest for one in members) != end.digest:
        raise WrongEndError(
            f"table {table}: the batches that arrived are not those that the client's end names; "
            "send the files again under a new job"
        )
    return members


def check_coverage(group: merged.Merged, end: End) -> None:
    """A group that was merged before the end was known may cover more than the end names."""
    if group.end > end.batches:
        raise WrongEndError(
            f"table {group.table}: the client ended it at {end.batches} batches, after "
            f"{group.end} had arrived; send it again under a new job"
        )


class _Gathered:
    """Reads what one task needs; a table's members once."""

    def __init__(self, store: Store, life: Life) -> None:
        self._store = store
        self._life = life
        self._members: dict[str, list[merged.Member]] = {}

    def parts(self, stage: str, only: int | None = None) -> list[Part]:
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
        return [
            Part(mapped.read_stream(_reader(self._store, key), body, span, key))
            for key, body, span in spans
        ]

    def _sources(self, stage: str) -> Iterable[tuple[str, int, StageIndex]]:
        scan = stage_of(self._life, stage)
        if scan is None:
            return self._folds(stage)
        if scan.table not in self._members:
            self._members[scan.table] = table_members(self._store, self._life, scan.table)
        return (
            (self._life.keys.mapped(scan.table, one.index.batch), one.body, one.index.stages[stage])
            for one in self._members[scan.table]
        )

    def _folds(self, fold: str) -> Iterator[tuple[str, int, StageIndex]]:
        for number in range(self._life.shape.folds[fold].partitions):
            key = self._life.keys.output(Task("fold", fold, number))
            index, body = outputs.decode_fold(_reader(self._store, key), key)
            yield key, body, index.slices


def _chosen(index: StageIndex, only: int | None) -> Sequence[Span]:
    if only is None:
        return index.slices
    return [index.slices[min(only, len(index.slices) - 1)]]


def _reports(store: Store, life: Life, members: Iterable[merged.Member]) -> Iterator[Part]:
    for one in members:
        index = one.index
        if index.rejects.rows or index.repaired:
            key = life.keys.mapped(index.table, index.batch)
            data = mapped.read_stream(_reader(store, key), one.body, index.rejects, key)
            yield Part(data, index.file, index.repaired)


def _reader(store: Store, key: str) -> frame.Read:
    return lambda offset, length: store.read(key, offset, length)
