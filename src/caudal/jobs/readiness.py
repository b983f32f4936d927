"""From what exists to what may run.

Rules:
1. A map task is ready when its batch exists. A merge is ready when every batch of its group is
   mapped; only the table's end says how many batches its last group has.
2. A table is complete when its end is known and every group is merged. A fold is ready when the
   tables and folds that it reads are complete, a finish likewise; a fold is complete when all its
   partitions exist. The rejects report is a finish that reads every table.
3. `follow_up` is asked after a task's output exists, whoever made it, and before the task is
   acknowledged. So the last of several finishers sees that it was the last, and a crash between
   the two means redelivery, which asks again.
4. It looks at one group of the task's own level, and at a level above only when that is complete:
   its cost does not grow with the number of batches.

Facts are asked for lazily: a `Facts` that reads a store and one that is a plain dictionary serve
the same decisions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from caudal.formats.keys import GROUP, REJECTS, Task
from caudal.jobs.intervals import IntervalSet


class Facts(Protocol):
    """What exists of one job."""

    def end(self, table: str) -> int | None:
        """The number of batches of a table, once the client has said it."""

    def mapped(self, table: str, group: int) -> IntervalSet:
        """Which members of a group are mapped, counted from 0 within the group."""

    def merged(self, table: str) -> IntervalSet:
        """Which groups of a table are merged."""

    def folded(self, fold: str) -> IntervalSet:
        """Which partitions of a fold exist."""

    def finished(self) -> frozenset[str]:
        """Which results exist."""


@dataclass(frozen=True)
class Step:
    """A fold or finish: what it reads, and in how many partitions it runs."""

    tables: frozenset[str]
    folds: frozenset[str]
    partitions: int = 1


@dataclass(frozen=True)
class Shape:
    """What a plan says about order: which steps read which tables and folds."""

    tables: tuple[str, ...]  # those that are mapped
    folds: Mapping[str, Step]
    finishes: Mapping[str, Step]  # queries, and the rejects report
    group: int = GROUP  # batches per group

    @classmethod
    def of(
        cls,
        tables: Iterable[str],
        folds: Mapping[str, Step],
        finishes: Mapping[str, Step],
        group: int = GROUP,
    ) -> "Shape":
        listed = tuple(tables)
        report = Step(frozenset(listed), frozenset())
        return cls(listed, dict(folds), {**finishes, REJECTS: report}, group)

    def group_size(self, group: int, end: int | None) -> int | None:
        """How many batches a group has; None while nobody knows."""
        if end is None:
            return None
        return max(0, min(self.group, end - group * self.group))

    def group_count(self, end: int) -> int:
        return -(-end // self.group)


def belongs(task: Task, shape: Shape) -> bool:
    """Is it a task of this job at all? Whoever reaches the broker may ask for anything."""
    match task.kind:
        case "map" | "merge":
            return task.name in shape.tables
        case "fold":
            step = shape.folds.get(task.name)
            return step is not None and task.number < step.partitions
        case "finish":
            return task.name in shape.finishes


def table_complete(table: str, shape: Shape, facts: Facts) -> bool:
    end = facts.end(table)
    return end is not None and facts.merged(table).covers(shape.group_count(end))


def group_mapped(table: str, group: int, shape: Shape, facts: Facts) -> bool:
    """Is every batch of the group mapped? A full group needs no end to know that."""
    mapped = facts.mapped(table, group)
    if mapped.covers(shape.group):
        return True
    size = shape.group_size(group, facts.end(table))
    return size is not None and size > 0 and mapped.covers(size)


def step_ready(step: Step, shape: Shape, facts: Facts) -> bool:
    return all(table_complete(table, shape, facts) for table in sorted(step.tables)) and all(
        facts.folded(fold).covers(shape.folds[fold].partitions) for fold in sorted(step.folds)
    )


def follow_up(done: Task, shape: Shape, facts: Facts) -> list[Task]:
    """The tasks that may run now that this one's output exists."""
    match done.kind:
        case "map":
            group = done.number // shape.group
            ready = group_mapped(done.name, group, shape, facts)
            return [Task("merge", done.name, group)] if ready else []
        case "merge":
            return after_table(done.name, shape, facts)
        case "fold":
            if not facts.folded(done.name).covers(shape.folds[done.name].partitions):
                return []
            return _readers(shape, facts, fold=done.name)
        case "finish":
            return []


def at_creation(shape: Shape) -> list[Task]:
    """What may run before any row has arrived: queries that read no table."""
    steps = [("fold", shape.folds), ("finish", shape.finishes)]
    return [
        Task("fold" if kind == "fold" else "finish", name, number)
        for kind, named in steps
        for name, step in named.items()
        if not step.tables and not step.folds
        for number in range(step.partitions)
    ]


def after_end(table: str, shape: Shape, facts: Facts) -> list[Task]:
    """What may run now that a table's end is known: its last group may be complete only now, and
    a table without rows is complete at once."""
    end = facts.end(table)
    if end is None:
        return []
    last = shape.group_count(end) - 1
    if last >= 0 and last not in facts.merged(table) and group_mapped(table, last, shape, facts):
        return [Task("merge", table, last)]
    return after_table(table, shape, facts)


def after_table(table: str, shape: Shape, facts: Facts) -> list[Task]:
    """What may run if this table is complete."""
    if not table_complete(table, shape, facts):
        return []
    return _readers(shape, facts, table=table)


def all_finished(shape: Shape, facts: Facts) -> bool:
    return facts.finished() >= set(shape.finishes)


def _readers(
    shape: Shape, facts: Facts, *, table: str | None = None, fold: str | None = None
) -> list[Task]:
    """The ready steps that read this table or fold."""
    tasks = []
    for name, step in shape.folds.items():
        if (table in step.tables or fold in step.folds) and step_ready(step, shape, facts):
            tasks += [Task("fold", name, number) for number in range(step.partitions)]
    for name, step in shape.finishes.items():
        if (table in step.tables or fold in step.folds) and step_ready(step, shape, facts):
            tasks.append(Task("finish", name))
    return tasks
