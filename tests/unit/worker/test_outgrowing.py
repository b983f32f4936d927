"""A worker that holds too much between two tasks lets go of what it can, or leaves."""

import logging
from pathlib import Path
from typing import Any, cast

import pytest

from caudal.broker import MemoryBroker
from caudal.jobs.ports import Ports
from caudal.jobs.runs import JobRuns
from caudal.process.clock import SystemClock, new_id
from caudal.process.signals import Stop
from caudal.store.memory import MemoryStore
from caudal.worker import process
from caudal.worker.figures import WorkerMetrics
from caudal.worker.process import Worker
from caudal.worker.settings import WorkerSettings

MIB = 1 << 20


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    made = Worker(
        WorkerSettings("w"),
        MemoryStore,
        cast(Any, MemoryBroker()),
        tmp_path,
        WorkerMetrics(),
        Stop(),
    )
    made._idle_bytes = made.settings.idle_bytes(150 * MIB)
    return made


def tools_of(worker: Worker) -> Ports:
    store = MemoryStore()
    return Ports(store, MemoryBroker(), worker._compute, SystemClock(), new_id, JobRuns(store))


def holding(monkeypatch: pytest.MonkeyPatch, *held: int) -> None:
    """What the process holds, each time that somebody asks."""
    told = iter(held)
    monkeypatch.setattr(process, "held_bytes", lambda: next(told) * MIB)


def test_one_that_holds_little_goes_on(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    holding(monkeypatch, 200)
    assert not worker._ends(tools_of(worker))
    assert not worker.stop.requested()


def test_one_that_can_let_go_goes_on(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    holding(monkeypatch, 500, 180)
    assert not worker._ends(tools_of(worker))
    assert not worker.outgrown


def test_one_that_cannot_leaves(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    holding(monkeypatch, 500, 480)
    with caplog.at_level(logging.WARNING):
        assert worker._ends(tools_of(worker))
    assert worker.outgrown
    assert worker.stop.reason == "it held too much memory between two tasks"
    assert "replaced: it holds too much memory while idle" in caplog.text


def test_one_that_is_asked_to_stop_stops(worker: Worker) -> None:
    worker.stop.request("SIGTERM")
    assert worker._ends(tools_of(worker))
    assert not worker.outgrown


def test_half_of_the_memory_is_for_the_next_task() -> None:
    settings = WorkerSettings("w", memory_bytes=1000 * MIB)
    assert settings.idle_bytes(150 * MIB) == 500 * MIB
    assert settings.idle_bytes(450 * MIB) == 578 * MIB  # or it would leave for ever
