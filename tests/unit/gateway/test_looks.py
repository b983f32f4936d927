"""Streams share looks at a job, and nobody gets an older one than before."""

from dataclasses import dataclass
from typing import Any

import pytest
from tests.harness.hand_clock import HandClock

from caudal.errors import StoreError
from caudal.gateway.looks import _MOST_KEPT, FRESH_SECONDS, Looks


@dataclass
class Job:
    """Each look gives the next number."""

    looks: int = 0

    def look(self) -> Any:
        self.looks += 1
        return self.looks


def test_many_streams_cost_as_many_looks_as_one() -> None:
    clock, job = HandClock(), Job()
    looks = Looks(clock)
    shown = [0] * 5
    for _ in range(40):
        clock.sleep(FRESH_SECONDS / 5)
        for number in range(5):
            status: Any = looks.at("run", job.look)
            assert status >= shown[number]
            shown[number] = status
    assert job.looks <= 40 / 5 + 1


def test_a_pause_gives_a_newer_look() -> None:
    clock, job = HandClock(), Job()
    looks = Looks(clock)
    first: Any = looks.at("run", job.look)
    clock.sleep(FRESH_SECONDS)
    assert looks.at("run", job.look) == first + 1


def test_jobs_are_apart_and_bounded() -> None:
    looks = Looks(HandClock())
    jobs = {f"run{number}": Job() for number in range(_MOST_KEPT + 50)}
    for run, job in jobs.items():
        looks.at(run, job.look)
        assert job.looks == 1
    assert len(looks._seen) == _MOST_KEPT


def test_an_error_is_not_kept() -> None:
    looks, job = Looks(HandClock()), Job()

    def fail() -> Any:
        raise StoreError("the store does not answer")

    with pytest.raises(StoreError):
        looks.at("run", fail)
    looks.at("run", job.look)
    assert job.looks == 1
