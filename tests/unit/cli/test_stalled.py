"""A client says that nothing of its job is computed, more and more seldom."""

from collections.abc import Iterable

import pytest

from caudal.cli.stalled import SECONDS, Standstill
from caudal.formats.outcomes import Outcome
from caudal.formats.replies import JobStatus, TableStatus

READS = {"q": ("t",), "both": ("t", "u"), "rejects": ("t", "u")}


def seen(
    mapped: int, arrived: int, batches: int | None, results: tuple[str, ...] = (), other: int = 0
) -> JobStatus:
    """A job whose table `t` is as given. Of `u`, so many batches are mapped, and more will come."""
    tables = {"t": TableStatus(batches, arrived, mapped), "u": TableStatus(None, other, other)}
    return JobStatus("r", None, tables, {}, results, READS)


def told(looks: Iterable[tuple[float, JobStatus]]) -> list[tuple[float, float]]:
    standstill = Standstill()
    found = [(now, standstill.begins(status, now)) for now, status in looks]
    return [(now, seconds) for now, seconds in found if seconds]


@pytest.mark.parametrize(
    "waiting",
    [seen(0, 3, None), seen(0, 3, 3), seen(2, 3, 3), seen(3, 3, 3), seen(0, 0, 0)],
    ids=["uploading", "sent", "mapping", "folding", "empty table"],
)
def test_a_job_that_could_go_on_and_does_not_is_named(waiting: JobStatus) -> None:
    looks = [(100.0 + second, waiting) for second in range(100)]
    assert told(looks) == [(115.0, 15.0), (130.0, 30.0), (160.0, 60.0)]


def test_each_task_that_ends_begins_the_time_anew() -> None:
    slow = [(10.0 * n, seen(n, 9, 9)) for n in range(9)]
    assert told(slow) == []
    again = [*slow, (95.0, seen(8, 9, 9)), (99.0, seen(8, 9, 9, ("q",))), (120.0, slow[-1][1])]
    assert told(again) == [(95.0, 15.0)]


@pytest.mark.parametrize("task_seconds", [16, 20, 29])
def test_long_tasks_are_told_once(task_seconds: int) -> None:
    looks = [(float(n), seen(n // task_seconds, 900, 900)) for n in range(3600)]
    assert told(looks) == [(SECONDS, SECONDS)]


@pytest.mark.parametrize(
    "slow",
    [seen(3, 3, None), seen(3, 3, 3, ("q",)), seen(3, 3, 3, ("q",), other=7)],
    ids=["one table", "the other table", "its batches are mapped"],
)
def test_a_slow_producer_is_no_standstill(slow: JobStatus) -> None:
    assert told((float(n), slow) for n in range(100)) == []


def test_an_ended_job_is_no_standstill() -> None:
    ended = JobStatus("r", Outcome("done"), {"t": TableStatus(3, 3, 0)}, {}, (), READS)
    assert told((float(n), ended) for n in range(100)) == []
