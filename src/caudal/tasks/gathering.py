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
from itertools import groupby
from operator import itemgetter

from caudal.core.readiness import table_complete
from caudal.core.tasks import REJECTS, Task
from caudal.errors import NotFoundError
from caudal.formats import frame, mapped, merged, outputs
from caudal.formats.ending import End, digest_of_digests
from caudal.formats.mapped import Span, StageIndex
from caudal.store.port import Store
from caudal.tasks.borrowing import BorrowingStore
from caudal.tasks.facts import StoreFacts
from caudal.tasks.life import Life, stage_of
from caudal.tasks.ports import Inputs, JobError, Part

_MOST_HINT_BATCHES = 4_096  # of the table that a hint is made of
_MOST_HINT_BYTES = 8 << 20
_MOST_READ_BYTES = 64 << 20


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
        batch = _batch(store, life.keys.batch(task.name, task.number))
        return {**hint_inputs(store, life, task.name), task.name: [batch]}
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


def _batch(store: Store, key: str) -> Part:
    fresh = store.take_fresh(key) if isinstance(store, BorrowingStore) else None
    return Part(store.read(key)) if fresh is None else Part(fresh, fresh=True)


def hint_inputs(store: Store, life: Life, table: str) -> Inputs:
    """Whole stages of other tables that are complete, where they let this table's scans drop rows.

    Complete stages never change, so a life keeps what was gathered once. What is large is not
    gathered: a hint may come and go without changing an answer.
    """
    names = life.hint_stages(table)
    for name in names:
        if name not in life.hints and (parts := _hint_parts(store, life, name)) is not None:
            life.hints[name] = parts
    return {name: life.hints[name] for name in names if life.hints.get(name)}


def _hint_parts(store: Store, life: Life, stage: str) -> list[Part] | None:
    """A stage's streams; none if they are too large, None while its table is not complete."""
    scan, facts = stage_of(life, stage), StoreFacts(store, life.keys)
    end = facts.end(scan.table) if scan else None
    if scan is None or end is None:
        return None
    if end > _MOST_HINT_BATCHES:
        return []
    if not table_complete(scan.table, life.shape, facts):
        return None
    gathered = _Gathered(store, life)
    return gathered.parts(stage) if gathered.size(stage) <= _MOST_HINT_BYTES else []


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
            Part(data)
            for (key, body), together in groupby(spans, key=itemgetter(0, 1))
            for data in self._streams(key, body, [span for _, _, span in together])
        ]

    def size(self, stage: str) -> int:
        """How many bytes its streams take."""
        return sum(span.length for _, _, index in self._sources(stage) for span in index.slices)

    def _streams(self, key: str, body: int, spans: Sequence[Span]) -> Iterator[bytes]:
        """The streams of one object. They lie side by side, so a few reads give them all."""
        for together in _side_by_side(spans):
            first, last = together[0], together[-1]
            begin = body + first.offset
            data = self._store.read(key, begin, last.offset + last.length - first.offset)
            for span in together:
                yield mapped.read_stream(_from(data, begin), body, span, key)

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


def _side_by_side(spans: Sequence[Span]) -> Iterator[list[Span]]:
    """Runs of spans without a gap, none of them larger than one read should be."""
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
    """Ranged reads of an object of which only the bytes from `begin` on are here."""
    return lambda offset, length: data[offset - begin : offset - begin + length]


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
