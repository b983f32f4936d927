"""Decides which tasks of a job may run, from the objects that exist.

A job turns tables into results. The client cuts each table into numbered batches and sends them.
When it has sent the last one, it sends the table's end, which says how many batches there are.
Four kinds of tasks do the work, and every task creates exactly one object, its output:

- A map reads one batch and computes the part of every query that needs only this batch.
- A merge reads the indexes of the mapped batches of one group (`Shape.group` neighbouring
  batches) and writes them into one object. Later tasks then read one object per group instead of
  one per batch.
- A fold combines rows of whole tables, or of other folds. It may be divided into partitions; each
  partition is a task.
- A finish makes the result of one query. The rejects report is a finish, too.

    batch --map--> mapped --merge--> merged group --+--> fold --+--> finish --> result
    (one each)                  (one per group)     |           |
                                                    +-----------+

No process keeps track of the job. The objects in the store are its whole state: objects are
created once, never changed, and never disappear while the job runs. So "may this task run?" is a
question about which objects exist. A ready task stays ready, any worker may ask the question, and
asking it twice gives a second message for the same task but never a second output.

A worker that has created an output therefore asks: what has become ready through this output?
`follow_up` answers. Two workers may create the last two outputs of a group at the same moment.
Each of them asks only after its own output exists, so at least one of them sees both.

Rules
1. A map is ready when its batch exists. A merge is ready when every batch of its group is mapped.
   A full group needs nothing else; the size of the last group is known only from the table's end.
2. A table is complete when its end is known and every group is merged. A fold is complete when all
   its partitions exist. A fold or finish is ready when all tables and folds that it reads are
   complete. The rejects report reads every table.
3. `follow_up` is called after the task's output exists, no matter which worker created it, and
   before the task is acknowledged. So the worker that finishes last sees that it was the last. If
   a worker crashes between the two, the broker delivers the task again, and the question is asked
   again.
4. `follow_up` looks at one group of the task's own level. It looks at the next level only if this
   level is complete. So its cost does not grow with the number of batches.

    output of     may make ready                           decided by
    ------------  ---------------------------------------  -----------------------------
    (creation)    folds and finishes that read nothing     `at_creation`
    (batch)       the map of this batch                    the gateway that stored it
    (end)         the last merge; readers of the table     `after_end`
    map           the merge of its group                   `follow_up`
    merge         folds and finishes that read the table   `follow_up`, `after_table`
    fold          folds and finishes that read the fold    `follow_up`
    finish        nothing; the last one ends the job       `all_finished`

All functions here are pure. They ask a `Facts` only for what they need, so the same decisions work
on a store and on a plain dictionary in a test.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from caudal.formats.keys import GROUP, REJECTS, Task
from caudal.jobs.intervals import IntervalSet


class Facts(Protocol):
    """The objects of one job that exist."""

    def end(self, table: str) -> int | None:
        """Return the number of batches of a table; None until the client has sent the end."""

    def mapped(self, table: str, group: int) -> IntervalSet:
        """Return the mapped batches of a group, counted from 0 within the group."""

    def merged(self, table: str) -> IntervalSet:
        """Return the groups of a table that are merged."""

    def folded(self, fold: str) -> IntervalSet:
        """Return the partitions of a fold that exist."""

    def finished(self) -> frozenset[str]:
        """Return the names of the results that exist."""


@dataclass(frozen=True)
class Step:
    """A fold or finish: the tables and folds that it reads, and its number of partitions."""

    tables: frozenset[str]
    folds: frozenset[str]
    partitions: int = 1


@dataclass(frozen=True)
class Shape:
    """The dependencies of a plan: which steps read which tables and folds."""

    tables: tuple[str, ...]  # the tables that the client sends and workers map
    folds: Mapping[str, Step]
    finishes: Mapping[str, Step]  # queries, commits, and the rejects report
    group: int = GROUP  # batches per group
    commits: frozenset[str] = frozenset()  # finishes that write to a dataset; they are no queries

    @classmethod
    def of(
        cls,
        tables: Iterable[str],
        folds: Mapping[str, Step],
        finishes: Mapping[str, Step],
        group: int = GROUP,
        commits: Iterable[str] = (),
    ) -> "Shape":
        listed = tuple(tables)
        report = Step(frozenset(listed), frozenset())
        named = frozenset(commits)
        last = {**finishes, **dict.fromkeys(named, report), REJECTS: report}
        return cls(listed, dict(folds), last, group, named)

    def group_size(self, group: int, end: int | None) -> int | None:
        """Return how many batches a group has; None while the table's end is unknown."""
        if end is None:
            return None
        return max(0, min(self.group, end - group * self.group))

    def group_count(self, end: int) -> int:
        return -(-end // self.group)


def belongs(task: Task, shape: Shape) -> bool:
    """Return whether the task is part of this job.

    Messages are not trusted: every process that reaches the broker can publish any task.
    """
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
    """Return whether every batch of the group is mapped. A full group needs no end for that."""
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
    """Return the tasks that became ready because the output of `done` exists."""
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
    """Return the tasks that may run before any row has arrived: queries that read no table."""
    steps = [("fold", shape.folds), ("finish", shape.finishes)]
    return [
        Task("fold" if kind == "fold" else "finish", name, number)
        for kind, named in steps
        for name, step in named.items()
        if not step.tables and not step.folds
        for number in range(step.partitions)
    ]


def after_end(table: str, shape: Shape, facts: Facts) -> list[Task]:
    """Return the tasks that became ready because a table's end is known.

    The end may complete the last group. A table without rows is complete at once.
    """
    end = facts.end(table)
    if end is None:
        return []
    last = shape.group_count(end) - 1
    if last >= 0 and last not in facts.merged(table) and group_mapped(table, last, shape, facts):
        return [Task("merge", table, last)]
    return after_table(table, shape, facts)


def after_table(table: str, shape: Shape, facts: Facts) -> list[Task]:
    """Return the ready steps that read this table, if the table is complete."""
    if not table_complete(table, shape, facts):
        return []
    return _readers(shape, facts, table=table)


def all_finished(shape: Shape, facts: Facts) -> bool:
    return facts.finished() >= set(shape.finishes)


def _readers(
    shape: Shape, facts: Facts, *, table: str | None = None, fold: str | None = None
) -> list[Task]:
    """Return the ready steps that read this table or fold."""
    tasks = []
    for name, step in shape.folds.items():
        if (table in step.tables or fold in step.folds) and step_ready(step, shape, facts):
            tasks += [Task("fold", name, number) for number in range(step.partitions)]
    for name, step in shape.finishes.items():
        if (table in step.tables or fold in step.folds) and step_ready(step, shape, facts):
            tasks.append(Task("finish", name))
    return tasks
