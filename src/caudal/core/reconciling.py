"""What a job without progress still lacks, computed from what exists.

The broker is a hint: everything that should be in a queue follows from the store. So even a broker
that lost all its data costs time, never answers. A round is bounded, because a job may lack a
million tasks and publishing them all again would bury everybody else.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Protocol

from caudal.core.intervals import IntervalSet
from caudal.core.readiness import Facts, Shape, group_mapped, group_size, step_ready
from caudal.core.tasks import GROUP, Task

ROUND = 256  # tasks per job and round, at most


class StoredFacts(Facts, Protocol):
    """Facts that also know what the client sent."""

    def groups(self, table: str) -> Iterable[int]:
        """The groups of which any batch has arrived, ascending."""

    def batches(self, table: str, group: int) -> IntervalSet:
        """Which members of a group have arrived, counted from 0 within the group."""


def missing_tasks(shape: Shape, facts: StoredFacts, limit: int = ROUND) -> list[Task]:
    """Tasks that may run and whose output does not exist, the first `limit` of them."""
    return list(islice(_missing(shape, facts), limit))


def _missing(shape: Shape, facts: StoredFacts) -> Iterator[Task]:
    for table in shape.tables:
        merged = facts.merged(table)
        for group in facts.groups(table):
            if group not in merged:
                yield from _missing_in_group(table, group, facts)
    for name, step in shape.folds.items():
        lacking = facts.folded(name).missing(step.partitions)
        if lacking and step_ready(step, shape, facts):
            yield from (Task("fold", name, number) for number in lacking)
    finished = facts.finished()
    for name, step in shape.finishes.items():
        if name not in finished and step_ready(step, shape, facts):
            yield Task("finish", name)


def _missing_in_group(table: str, group: int, facts: StoredFacts) -> Iterator[Task]:
    mapped = facts.mapped(table, group)
    size = group_size(group, facts.end(table))
    for number in facts.batches(table, group):
        if number not in mapped and (size is None or number < size):
            yield Task("map", table, group * GROUP + number)
    if group_mapped(table, group, facts):
        yield Task("merge", table, group)
