"""A client says that nothing of its job is computed, once for each standstill."""

from collections.abc import Iterable

import pytest

from caudal.cli.stalled import SECONDS, Standstill
from caudal.formats.outcomes import Outcome
from caudal.formats.replies import JobStatus, TableStatus


def seen(
    mapped: int, arrived: int, batches: int | None, results: tuple[str, ...] = ()
) -> JobStatus:
    return JobStatus("r", None, {"t": TableStatus(batches, arrived, mapped)}, {}, results)


def told(looks: Iterable[tuple[float, JobStatus]]) -> list[float]:
    standstill = Standstill()
    return [now for now, status in looks if standstill.begins(status, now)]


@pytest.mark.parametrize(
    "waiting",
    [seen(0, 3, None), seen(0, 3, 3), seen(2, 3, 3), seen(3, 3, 3), seen(0, 0, 0)],
    ids=["uploading", "sent", "mapping", "folding", "empty table"],
)
def test_a_job_that_could_go_on_and_does_not_is_named_once(waiting: JobStatus) -> None:
    looks = [(100.0 + second, waiting) for second in range(100)]
    assert told(looks) == [100.0 + SECONDS]


def test_each_task_that_ends_begins_the_time_anew() -> None:
    slow = [(10.0 * n, seen(n, 9, 9)) for n in range(9)]
    assert told(slow) == []
    again = [*slow, (95.0, seen(8, 9, 9)), (99.0, seen(8, 9, 9, ("q",))), (120.0, slow[-1][1])]
    assert told([*again, (136.0, slow[-1][1])]) == [95.0, 136.0]


def test_a_slow_producer_is_no_standstill() -> None:
    assert told((float(n), seen(3, 3, None)) for n in range(100)) == []


def test_an_ended_job_is_no_standstill() -> None:
    ended = JobStatus("r", Outcome("done"), {"t": TableStatus(3, 3, 0)}, {}, ())
    assert told((float(n), ended) for n in range(100)) == []
