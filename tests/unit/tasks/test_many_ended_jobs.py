"""What a gateway asks of S3 does not grow with the jobs that have ended (job_index.py)."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec
import pytest
from tests.harness.gateway_place import REQUEST
from tests.harness.hand_clock import HandClock

from caudal.broker import MemoryBroker
from caudal.formats import job as job_format
from caudal.formats.job import Job, Options
from caudal.formats.keys import Keys, job_key
from caudal.formats.outcomes import Outcome, encode_outcome
from caudal.formats.replies import JobEntry
from caudal.jobs import objects
from caudal.jobs.janitor import Janitor
from caudal.jobs.job_index import (
    all_ended_marks,
    enrol,
    move,
    running_mark,
    running_marks,
)
from caudal.jobs.ports import Bounds, Ports
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.runs import JobRuns
from caudal.jobs.service import JobService
from caudal.store.memory import MemoryStore
from caudal.store.port import PAGE, Page
from caudal.worker.compute import LocalCompute

DAY, MANY, FEW = 86_400.0, 20_000, 100
KEPT = msgspec.structs.replace(REQUEST, options=Options(keep_seconds=2 * DAY))


class BilledStore(MemoryStore):
    """Counts requests as S3Store makes them: a listing reads all names of its level or tree."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = 0

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        self.requests += 1
        return super().read(key, offset, length)

    def create(self, key: str, data: object, *, lasting: bool = True) -> None:
        self.requests += 1
        super().create(key, data, lasting=lasting)  # type: ignore[arg-type]

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        whole = super().list(prefix, recursive=recursive, limit=1 << 40)
        self.requests += max(1, -(-(len(whole.entries) + len(whole.folders)) // 1000))
        return super().list(prefix, recursive=recursive, after=after, limit=limit)

    def asked_by(self, act: Callable[[], object]) -> int:
        before = self.requests
        act()
        return self.requests - before


class Past:
    """A gateway with jobs that ended within the last two days, one every few seconds."""

    def __init__(self, jobs: int, *, indexed: bool = True, keep: float | None = None) -> None:
        self.store, self.clock, ids = BilledStore(), HandClock(100 * DAY), itertools.count()
        self.ports = Ports(
            *(self.store, MemoryBroker(), LocalCompute(), self.clock, lambda: f"r{next(ids)}"),
            job_runs=JobRuns(self.store),
            bounds=Bounds(keep_seconds=keep),
        )
        self.gateway = JobService(self.ports, "g1")
        self.gateway.create("first", "me", KEPT)
        self.first = objects.job_of(objects.job_bytes(self.store, "first"), "first")
        for job in self._others(jobs):
            self.store.create(job_key(job.id), job_format.encode(job))
            end = Outcome("done", "", job.created)
            self.store.create(Keys(job.id, job.run).outcome, encode_outcome(end))
            if indexed:
                enrol(self.store, job)
                move(self.store, running_mark(job), job, job.created + 2 * DAY)
        self.reconciler, self.janitor = Reconciler(self.ports), Janitor(self.ports)

    def _others(self, jobs: int) -> Iterator[Job]:
        for number in range(jobs):
            created = self.clock.time - DAY - number * DAY / 2 / jobs
            yield msgspec.structs.replace(self.first, id=f"j{number}", run="r", created=created)

    def costs(self) -> dict[str, int]:
        """Requests of a round of each loop, of a page of jobs, and of a new job."""
        for _ in range(3):
            self.reconciler.round()
            self.janitor.round()
        return {
            "reconciler": self.store.asked_by(self.reconciler.round),
            "janitor": self.store.asked_by(self.janitor.round),
            "page": self.store.asked_by(lambda: self.gateway.jobs("me", "", 50)),
            "new job": self.store.asked_by(lambda: self.gateway.create("new", "me", KEPT)),
        }


def test_requests_do_not_grow_with_ended_jobs() -> None:
    few, many = Past(FEW).costs(), Past(MANY).costs()
    assert many.pop("page") <= few.pop("page") <= 2 * 50 + 12  # fewer hours hold a page of many
    assert many == few
    assert few["reconciler"] < 20
    assert few["janitor"] < 10


def test_pages_hold_every_job_once_the_newest_first() -> None:
    past = Past(120)
    found: list[JobEntry] = []
    after = ""
    while True:
        page = past.gateway.jobs("me", after, 50)
        assert len(page.jobs) <= 50
        found += page.jobs
        if page.next is None:
            break
        assert page.next > after
        after = page.next
    assert sorted(one.id for one in found) == sorted(["first", *(f"j{n}" for n in range(120))])
    assert [one.created for one in found] == sorted((one.created for one in found), reverse=True)
    assert past.gateway.jobs("another", "", 50).jobs == ()


def test_a_client_that_asks_for_an_ended_job_leaves_nothing() -> None:
    past = Past(1)
    before = past.store.list("").entries
    assert past.gateway.status("j0", "me").outcome is not None
    assert past.store.list("").entries == before


def test_jobs_of_a_store_without_an_index_are_found_and_expire() -> None:
    past = Past(5, indexed=False)
    assert len(past.gateway.jobs("me").jobs) == 1
    past.janitor.round()
    assert len(past.gateway.jobs("me").jobs) == 6
    past.janitor.round()
    assert len(running_marks(past.store)) == 1
    past.clock.time += 2 * DAY
    past.gateway.cancel("first", "me")
    past.clock.time += 3 * DAY
    past.janitor.round()
    past.janitor.round()
    assert past.store.list("").entries == ()


def test_a_shorter_time_to_keep_holds_after_a_restart() -> None:
    past = Past(5)
    Janitor(replace(past.ports, bounds=Bounds(keep_seconds=DAY))).round()
    assert len(list(all_ended_marks(past.store))) == 5
    assert [one.id for one in past.gateway.jobs("me").jobs] == ["first"]


@pytest.mark.parametrize("listed", [True, False])
def test_a_mark_of_a_run_that_is_gone_is_removed(listed: bool) -> None:
    past = Past(1)
    for entry in past.store.list("jobs/j0/").entries:
        past.store.delete(entry.key)
    if listed:
        _check_list_mends(past)
    past.clock.time += 2 * DAY
    past.janitor.round()
    assert [one.key for one in past.store.list("index/").entries if ".j0." in one.key] == []


def _check_list_mends(past: Past) -> None:
    assert [one.id for one in past.gateway.jobs("me").jobs] == ["first"]
    assert not [one for one in past.store.list("index/owners/").entries if ".j0." in one.key]


@pytest.mark.parametrize("after", ["j0", "a/b", "0000000000.j0"])
def test_a_place_that_no_page_named_is_refused(after: str) -> None:
    with pytest.raises(Exception, match="next"):
        Past(0).gateway.jobs("me", after)
