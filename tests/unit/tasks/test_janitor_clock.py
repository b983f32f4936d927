"""How long results stay: by whose clock, by whose wish, and until somebody deletes them."""

import itertools
import os
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.harness.gateway_place import REQUEST
from tests.harness.hand_clock import HandClock

from caudal.broker import MemoryBroker
from caudal.formats.job import Options
from caudal.jobs.interfaces import ConflictError, GoneError
from caudal.jobs.janitor import Janitor
from caudal.jobs.job_index import all_ended_marks
from caudal.jobs.ports import Bounds, Ports
from caudal.jobs.runs import JobRuns
from caudal.jobs.service import JobService
from caudal.store import DirectoryStore
from caudal.worker.compute import LocalCompute

HOUR, DAY = 3_600.0, 86_400.0


@pytest.fixture
def ports(tmp_path: Path) -> Ports:
    """With a job that was cancelled an hour ago, by the store's clock."""
    made = cancelled(tmp_path, HOUR)
    old = time.time() - HOUR
    os.utime(next(tmp_path.rglob("outcome.json")), (old, old))
    return made


def cancelled(folder: Path, behind: float) -> Ports:
    """With a job that was cancelled just now, by a process whose clock is so much behind."""
    store, ids = DirectoryStore(folder, fsync=False), itertools.count()
    clock = HandClock(time=store.time() - behind)
    made = Ports(
        store=store,
        broker=MemoryBroker(),
        compute=LocalCompute(),
        clock=clock,
        new_id=lambda: f"run{next(ids)}",
        job_runs=JobRuns(store),
    )
    request = msgspec.structs.replace(REQUEST, options=Options(keep_seconds=DAY))
    gateway = JobService(made, "g")
    gateway.create("j", "me", request)
    gateway.cancel("j", "me")
    return made


def kept(ports: Ports, seconds_ahead: float, keep_seconds: float | None = None) -> bool:
    """Is the job still there after the rounds of a janitor with such a clock?"""
    clock = HandClock(time=time.time() + seconds_ahead)
    janitor = Janitor(replace(ports, clock=clock, bounds=Bounds(keep_seconds=keep_seconds)))
    for _ in range(3):
        janitor.round()
        clock.time += Bounds().rest_seconds
    return bool(JobService(ports, "g").jobs("me").jobs)


@pytest.mark.parametrize("ahead", [0.0, 25 * HOUR, 400 * DAY])
def test_a_clock_that_is_ahead_deletes_nothing_early(ports: Ports, ahead: float) -> None:
    assert kept(ports, ahead)


def test_a_clock_that_is_ahead_says_so(ports: Ports, caplog: pytest.LogCaptureFixture) -> None:
    kept(ports, 25 * HOUR)
    assert "this clock is ahead of the store's" in caplog.text


def test_what_is_over_by_both_clocks_goes(ports: Ports) -> None:
    assert not kept(ports, 25 * HOUR, keep_seconds=HOUR / 2)
    assert list(ports.store.list("").entries) == []


def test_a_clock_that_is_behind_where_a_job_ends_deletes_nothing_early(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ports = cancelled(tmp_path, behind=25 * HOUR)
    assert kept(ports, 0.0)
    assert "the clock of the process that ended a job was behind the store's" in caplog.text
    (mark,) = all_ended_marks(ports.store)
    assert abs(mark.due - time.time() - DAY) < HOUR, "it is not looked at again before"
    old = time.time() - 25 * HOUR
    os.utime(next(tmp_path.rglob("outcome.json")), (old, old))
    assert not kept(ports, 25 * HOUR), "a day later"
    assert list(ports.store.list("").entries) == []


@pytest.mark.parametrize(("keep", "stays"), [(2 * HOUR, True), (HOUR / 2, False), (None, True)])
def test_the_clusters_setting_decides_if_there_is_one(
    ports: Ports, keep: float | None, stays: bool
) -> None:
    assert kept(ports, 0.0, keep_seconds=keep) is stays


def test_a_job_that_has_ended_can_be_deleted_and_a_running_one_not(ports: Ports) -> None:
    gateway = JobService(ports, "g")
    gateway.create("other", "me", REQUEST)
    with pytest.raises(ConflictError, match="cancel it first"):
        gateway.delete("other", "me")
    with pytest.raises(GoneError):
        gateway.delete("j", "somebody else")
    assert gateway.delete("j", "me").state == "cancelled"
    assert [one.id for one in gateway.jobs("me").jobs] == ["other"]
    assert not [one.key for one in ports.store.list("jobs/j/").entries]
