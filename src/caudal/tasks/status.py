"""How far a job has come: per table, fold and query."""

import msgspec

from caudal.core.intervals import IntervalSet
from caudal.core.readiness import Shape
from caudal.formats.ending import Outcome
from caudal.store.port import Store
from caudal.tasks.facts import StoreFacts
from caudal.tasks.life import Life, read_outcome


class TableStatus(msgspec.Struct, frozen=True):
    """`batches` is known once the client ended the table."""

    batches: int | None
    arrived: int
    mapped: int


class Status(msgspec.Struct, frozen=True):
    """A moment in a job's life. `folds` counts partitions done."""

    run: str
    outcome: Outcome | None
    tables: dict[str, TableStatus]
    folds: dict[str, tuple[int, int]]
    results: tuple[str, ...]


def status_of(store: Store, life: Life) -> Status:
    """What the store says now. Once a job has ended its data may be gone: only results count."""
    outcome, facts, shape = read_outcome(store, life.keys), StoreFacts(store, life.keys), life.shape
    running = outcome is None
    return Status(
        run=life.job.run,
        outcome=outcome,
        tables={t: _table(t, shape, facts) for t in shape.tables} if running else {},
        folds={
            name: (len(facts.folded(name)), step.partitions)
            for name, step in (shape.folds.items() if running else ())
        },
        results=tuple(sorted(facts.finished())),
    )


def _table(table: str, shape: Shape, facts: StoreFacts) -> TableStatus:
    """Merged groups are counted without looking at their members."""
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
