"""Computes from the store which tasks a job without progress still lacks.

The broker's queues are only a hint: the store determines every message that should be in a queue.
So a broker that loses all its data costs time but never an answer. A round is bounded: a job may
lack a million tasks, and publishing all of them again would delay every other job.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Protocol

from caudal.formats.keys import Task
from caudal.jobs.intervals import IntervalSet
from caudal.jobs.readiness import Facts, Shape, group_mapped, step_ready

ROUND = 256  # most tasks per job and round


class StoredFacts(Facts, Protocol):
    """Facts that also include the batches that have arrived."""

    @property
    def may_lose_maps(self) -> bool:
        """Return whether map outputs may be swept while the job needs them (shared_maps.py)."""

    def groups(self, table: str) -> Iterable[int]:
        """Return the groups with at least one batch that has arrived, ascending."""

    def batches(self, table: str, group: int) -> IntervalSet:
        """Return the batches of a group that have arrived, counted from 0 within the group."""


def missing_tasks(shape: Shape, facts: StoredFacts, limit: int = ROUND) -> list[Task]:
    """Return the first `limit` tasks that may run and whose output does not exist."""
    return list(islice(_missing(shape, facts), limit))


def _missing(shape: Shape, facts: StoredFacts) -> Iterator[Task]:
    finished = facts.finished()
    if finished >= set(shape.finishes):
        return
    for table in shape.tables:
        merged = facts.merged(table)
        for group in facts.groups(table):
            if group not in merged:
                yield from _missing_in_group(table, group, shape, facts)
            elif facts.may_lose_maps:
                yield from _missing_maps(table, group, shape, facts)
    for name, step in shape.folds.items():
        lacking = facts.folded(name).missing(step.partitions)
        if lacking and step_ready(step, shape, facts):
            yield from (Task("fold", name, number) for number in lacking)
    for name, step in shape.finishes.items():
        if name not in finished and step_ready(step, shape, facts):
            yield Task("finish", name)


def _missing_in_group(table: str, group: int, shape: Shape, facts: StoredFacts) -> Iterator[Task]:
    yield from _missing_maps(table, group, shape, facts)
    if group_mapped(table, group, shape, facts):
        yield Task("merge", table, group)


def _missing_maps(table: str, group: int, shape: Shape, facts: StoredFacts) -> Iterator[Task]:
    mapped = facts.mapped(table, group)
    size = shape.group_size(group, facts.end(table))
    for number in facts.batches(table, group):
        if number not in mapped and (size is None or number < size):
            yield Task("map", table, group * shape.group + number)


def awaits_client(shape: Shape, facts: StoredFacts) -> bool:
    """Return whether the client still has to send something: an end, or a batch before the end.

    Checking only the ends is not enough. A client may send the end of a table before all its
    batches have arrived, and then leave. Such a job could neither continue nor expire.
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
