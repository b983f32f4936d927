"""Readiness: whatever the order in which tasks finish, everything runs, and nothing too early."""

import random
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from caudal.formats.keys import GROUP, REJECTS, Lane, Task, lane_of
from caudal.jobs.intervals import IntervalSet
from caudal.jobs.readiness import (
    Shape,
    Step,
    after_end,
    all_finished,
    at_creation,
    follow_up,
    step_ready,
    table_complete,
)
from caudal.jobs.reconcile import missing_tasks


@dataclass
class Known:
    """Facts as plain sets."""

    ends: dict[str, int] = field(default_factory=dict)
    sent: set[tuple[str, int]] = field(default_factory=set)
    done: set[Task] = field(default_factory=set)
    may_lose_maps: bool = False

    def end(self, table: str) -> int | None:
        return self.ends.get(table)

    def _numbers(self, kind: str, name: str) -> list[int]:
        return [task.number for task in self.done if (task.kind, task.name) == (kind, name)]

    def mapped(self, table: str, group: int) -> IntervalSet:
        return _within(group, self._numbers("map", table))

    def merged(self, table: str) -> IntervalSet:
        return IntervalSet.of(self._numbers("merge", table))

    def folded(self, fold: str) -> IntervalSet:
        return IntervalSet.of(self._numbers("fold", fold))

    def finished(self) -> frozenset[str]:
        return frozenset(task.name for task in self.done if task.kind == "finish")

    def groups(self, table: str) -> list[int]:
        return sorted({number // GROUP for name, number in self.sent if name == table})

    def batches(self, table: str, group: int) -> IntervalSet:
        return _within(group, [number for name, number in self.sent if name == table])


def _within(group: int, numbers: list[int]) -> IntervalSet:
    return IntervalSet.of(n - group * GROUP for n in numbers if n // GROUP == group)


SHAPE = Shape.of(
    ["a", "b"],
    {
        "ab": Step(frozenset({"a", "b"}), frozenset(), partitions=3),
        "again": Step(frozenset(), frozenset({"ab"}), partitions=2),
    },
    {
        "only_a": Step(frozenset({"a"}), frozenset()),
        "joined": Step(frozenset({"b"}), frozenset({"again"})),
        "constant": Step(frozenset(), frozenset()),
    },
)


def may_run(task: Task, facts: Known) -> bool:
    """Are all inputs of a task there? Written apart from the code under test."""
    match task.kind:
        case "map":
            return (task.name, task.number) in facts.sent
        case "merge":
            end = facts.ends.get(task.name, 10**9)
            members = range(task.number * GROUP, min(end, (task.number + 1) * GROUP))
            return all(Task("map", task.name, number) in facts.done for number in members)
        case "fold":
            return step_ready(SHAPE.folds[task.name], SHAPE, facts)
        case "finish":
            return step_ready(SHAPE.finishes[task.name], SHAPE, facts)


ends = st.sampled_from([0, 1, 2, GROUP - 1, GROUP, GROUP + 1, 2 * GROUP])


@given(ends, ends, st.integers(0, 10**6))
def test_every_order_of_events_reaches_the_end(end_a: int, end_b: int, seed: int) -> None:
    chance = random.Random(seed)
    facts = Known()
    arrivals: list[tuple[str, int | None]] = [
        (table, number) for table, end in (("a", end_a), ("b", end_b)) for number in range(end)
    ]
    arrivals += [("a", None), ("b", None)]  # None: the end, which may come before its batches
    chance.shuffle(arrivals)
    queue = at_creation(SHAPE)
    counts = {"a": end_a, "b": end_b}
    while arrivals or queue:
        if arrivals and (not queue or chance.random() < 0.5):
            table, number = arrivals.pop()
            if number is None:
                facts.ends[table] = counts[table]
                queue += after_end(table, SHAPE, facts)
            else:
                facts.sent.add((table, number))
                queue.append(Task("map", table, number))
            continue
        task = queue.pop(chance.randrange(len(queue)))
        assert may_run(task, facts), task
        facts.done.add(task)
        queue += [ready for ready in follow_up(task, SHAPE, facts) if ready not in facts.done]
    assert all_finished(SHAPE, facts)
    assert facts.finished() == {"only_a", "joined", "constant", REJECTS}
    assert all(table_complete(table, SHAPE, facts) for table in "ab")


@given(ends, ends, st.integers(0, 10**6))
def test_the_reconciler_alone_reaches_the_end(end_a: int, end_b: int, seed: int) -> None:
    """Every message is lost, always: what the reconciler publishes is enough."""
    chance = random.Random(seed)
    facts = Known(ends={"a": end_a, "b": end_b})
    facts.sent = {(t, n) for t, end in (("a", end_a), ("b", end_b)) for n in range(end)}
    rounds = 0
    while not all_finished(SHAPE, facts):
        tasks = missing_tasks(SHAPE, facts)
        assert 0 < len(tasks) <= 256
        for task in tasks:
            if chance.random() < 0.8:
                assert may_run(task, facts) or task.kind != "map"
                facts.done.add(task)
        rounds += 1
        assert rounds < 200
    assert missing_tasks(SHAPE, facts) == []


def test_batches_beyond_the_end_are_ignored() -> None:
    facts = Known(ends={"a": 1, "b": 0}, sent={("a", 0), ("a", 5)})
    assert [task for task in missing_tasks(SHAPE, facts) if task.kind == "map"] == [
        Task("map", "a", 0)
    ]


def test_small_jobs_pass_big_ones() -> None:
    lanes = [lane_of(Task("map", "t", n)) for n in (0, 3, 4, 15, 16, 63, 64, 10**6)]
    assert lanes == [
        *[Lane.FIRST] * 2,
        *[Lane.EARLY] * 2,
        *[Lane.MIDDLE] * 2,
        *[Lane.LATE] * 2,
    ]
    assert lane_of(Task("merge", "t", 0)) == Lane.FIRST
    assert lane_of(Task("merge", "t", 1)) == Lane.LATE
