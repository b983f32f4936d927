"""What a job without progress still lacks, computed from what exists.

The broker is a hint: everything that should be in a queue follows from the store. So even a broker
that lost all its data costs time, never answers. A round is bounded, because a job may lack a
million tasks and publishing them all again would bury everybody else.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Protocol

from caudal.formats.keys import Task
from caudal.jobs.intervals import IntervalSet
from caudal.jobs.readiness import Facts, Shape, group_mapped, step_ready

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
                yield from _missing_in_group(table, group, shape, facts)
    for name, step in shape.folds.items():
        lacking = facts.folded(name).missing(step.partitions)
        if lacking and step_ready(step, shape, facts):
            yield from (Task("fold", name, number) for number in lacking)
    finished = facts.finished()
    for name, step in shape.finishes.items():
        if name not in finished and step_ready(step, shape, facts):
            yield Task("finish", name)


def _missing_in_group(table: str, group: int, shape: Shape, facts: StoredFacts) -> Iterator[Task]:
    mapped = facts.mapped(table, group)
    size = shape.group_size(group, facts.end(table))
    for number in facts.batches(table, group):
        if number not in mapped and (size is None or number < size):
            yield Task("map", table, group * shape.group + number)
    if group_mapped(table, group, shape, facts):
        yield Task("merge", table, group)


def awaits_client(shape: Shape, facts: StoredFacts) -> bool:
    """Is something missing that only the client can send: an end, or a batch before the end?

    The end alone would not do: a client that ends a table before all its batches have arrived, and
    then leaves, would leave a job that can neither go on nor expire.
    """
    for table in shape.tables:
        end = facts.end(table)
        if end is None:
            return True
        merged = facts.merged(table)
        for group in range(shape.group_count(end)):
            size = shape.group_size(group, end) or 0
            if group not in merged and not facts.batches(table, group).covers(size):
                return True
    return False
