"""Jobs that have ended cost nothing in most rounds, and are still swept and noticed."""

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.harness.gateway_place import REQUEST
from tests.harness.hand_clock import HandClock

from caudal.broker import MemoryBroker
from caudal.formats.job import Options
from caudal.jobs.janitor import Janitor
from caudal.jobs.job_index import running_marks
from caudal.jobs.ports import Ports
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.runs import JobRuns
from caudal.jobs.service import JobService
from caudal.store.memory import MemoryStore
from caudal.store.port import PAGE, Page
from caudal.worker.compute import LocalCompute

KEEP_SECONDS = 3_600.0
KEPT = msgspec.structs.replace(REQUEST, options=Options(keep_seconds=KEEP_SECONDS))


class CountedStore(MemoryStore):
    """How often it was asked for what."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        self.asked["read"] += 1
        return super().read(key, offset, length)

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        self.asked["list"] += 1
        return super().list(prefix, recursive=recursive, after=after, limit=limit)

    def asked_by(self, act: Callable[[], object]) -> dict[str, int]:
        """What one act asks."""
        self.asked.clear()
        act()
        return dict(self.asked)


class Place:
    """Two gateways' loops over one store; each remembers for itself."""

    def __init__(self, jobs: int) -> None:
        self.store, self.clock, ids = CountedStore(), HandClock(), itertools.count()
        self.ports = Ports(
            store=self.store,
            broker=MemoryBroker(),
            compute=LocalCompute(),
            clock=self.clock,
            new_id=lambda: f"run{next(ids)}",
            job_runs=JobRuns(self.store),
        )
        self.gateway = JobService(self.ports, "g1")
        self.names = [f"j{number}" for number in range(jobs)]
        for name in self.names:
            self.begin(name)
            self.gateway.cancel(name, "me")

    def begin(self, name: str) -> None:
        self.gateway.create(name, "me", KEPT)

    def loops(self) -> list[Any]:
        """A reconciler and a janitor of a gateway that has just started."""
        fresh: Any = type(self.ports.resting)
        ports = replace(self.ports, job_runs=JobRuns(self.store), resting=fresh())
        return [Reconciler(ports), Janitor(ports)]

    def settle(self, loops: list[Any]) -> None:
        """The first looks, and those that delete."""
        for _ in range(3):
            for loop in loops:
                loop.round()


def _asked(loops: list[Any], store: CountedStore) -> list[dict[str, int]]:
    return [store.asked_by(loop.round) for loop in loops]


IDLE = [{"list": 1}, {"list": 2}]  # of a reconciler and a janitor: running jobs; those and hours


@pytest.mark.parametrize("jobs", [1, 12])
def test_a_round_over_ended_jobs_only_lists(jobs: int) -> None:
    place = Place(jobs)
    loops = place.loops()
    place.settle(loops)
    assert _asked(loops, place.store) == IDLE
    place.clock.time += place.ports.bounds.rest_seconds
    place.settle(loops)
    assert _asked(loops, place.store) == IDLE
    assert running_marks(place.store) == []


def test_they_are_swept_when_their_time_is_over() -> None:
    place = Place(3)
    _, janitor = place.loops()
    place.settle([janitor])
    place.clock.time += KEEP_SECONDS - 1
    janitor.round()
    assert len(place.gateway.jobs("me").jobs) == 3
    place.clock.time += 1
    janitor.round()
    assert place.gateway.jobs("me").jobs == ()
    janitor.round()
    assert place.store.list("").entries == ()


def test_a_job_that_ends_elsewhere_is_noticed() -> None:
    place = Place(2)
    loops = place.loops()
    place.begin("running")
    place.settle(loops)
    assert all(place.store.asked_by(loop.round).get("read", 0) > 0 for loop in loops)
    place.gateway.cancel("running", "me")
    place.settle(loops)
    job_run = place.gateway.watch("running", "me")
    assert [one.key for one in place.store.list(f"{job_run.keys.root}/").entries] == [
        job_run.keys.outcome
    ]
    assert _asked(loops, place.store) == IDLE


def test_what_a_late_worker_adds_is_deleted_in_the_end() -> None:
    place = Place(1)
    _, janitor = place.loops()
    place.settle([janitor])
    late = f"{place.gateway.watch('j0', 'me').keys.root}/mapped/late"
    place.store.create(late, b"late")
    place.clock.time += place.ports.bounds.rest_seconds
    janitor.round()
    assert late not in [one.key for one in place.store.list("jobs/").entries]


def test_a_new_life_of_an_id_is_noticed_everywhere() -> None:
    place = Place(1)
    here, there = Reconciler(place.ports), place.loops()[0]
    place.settle([here, there])
    job_run = place.gateway.watch("j0", "me")
    for key in (f"jobs/{job_run.job.id}/job.json", job_run.keys.outcome):
        place.store.delete(key)
    place.begin("j0")
    here.round()
    there.round()
    assert here._watches
    assert there._watches


def test_an_id_that_is_gone_is_forgotten() -> None:
    place = Place(1)
    reconciler = place.loops()[0]
    place.settle([reconciler])
    job_run = place.gateway.watch("j0", "me")
    for key in (f"jobs/{job_run.job.id}/job.json", *(one.key for one in _all(place.store))):
        place.store.delete(key)
    reconciler.round()
    place.begin("j0")
    reconciler.round()
    assert reconciler._watches


def _all(store: MemoryStore) -> Any:
    return store.list("").entries
