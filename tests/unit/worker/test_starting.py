"""Waiting for what is away: patient, quiet, and not for ever if told so."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from tests.harness.hand_clock import HandClock

from caudal.broker import MemoryBroker
from caudal.broker.port import BrokerError
from caudal.errors import StoreError, UsageError
from caudal.formats.keys import Lane
from caudal.jobs.await_services import FIRST_SECONDS, waited_for
from caudal.process.signals import Stop
from caudal.store.memory import MemoryStore
from caudal.worker import process
from caudal.worker.figures import WorkerMetrics
from caudal.worker.process import Worker
from caudal.worker.settings import WorkerSettings


@dataclass
class Moody:
    """Answers at the last of its tries."""

    tries: int

    def ask(self) -> str:
        self.tries -= 1
        if self.tries:
            raise StoreError("away")
        return "here"


def never() -> bool:
    return False


def test_it_waits_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    clock = HandClock()
    assert waited_for("store", Moody(40).ask, StoreError, clock, never) == "here"
    assert [record.getMessage() for record in caplog.records] == [
        "waiting for the store", "the store answers",
    ]  # fmt: skip
    assert clock.slept[0] <= 0.2
    assert all(2.5 <= pause <= 5.0 for pause in clock.slept[10:])


def test_what_is_there_is_not_mentioned(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert waited_for("store", Moody(1).ask, StoreError, HandClock(), never) == "here"
    assert caplog.records == []


def test_patience_may_be_bounded() -> None:
    clock = HandClock()
    with pytest.raises(StoreError, match="away"):
        waited_for("store", Moody(10**6).ask, StoreError, clock, never, seconds=20)
    assert 20 <= clock.time <= 26


def test_it_stops_when_asked() -> None:
    clock = HandClock()
    found = waited_for("store", Moody(10**6).ask, StoreError, clock, lambda: clock.time > 3)
    assert found is None


def test_what_cannot_mend_itself_is_raised_at_once() -> None:
    def ask() -> str:
        raise UsageError("this store breaks its promise")

    with pytest.raises(UsageError, match="promise"):
        waited_for("store", ask, StoreError, HandClock(), never)


def test_a_worker_finds_a_broker_soon_and_asks_a_store_seldom(tmp_path: Path) -> None:
    """The broker's link paces itself; each look at a store is several requests."""
    clock, away = HandClock(), {"store": 20, "broker": 20}
    pauses: dict[str, list[float]] = {"store": [], "broker": []}

    def look(what: str) -> None:
        if away[what]:
            pauses[what] = clock.slept[len(pauses["store"]) if what == "broker" else 0 :]
            away[what] -= 1
            raise BrokerError("away") if what == "broker" else StoreError("away")

    class Broker(MemoryBroker):
        def depths(self) -> Mapping[Lane, int]:
            look("broker")
            return super().depths()

    def opened() -> MemoryStore:
        look("store")
        return MemoryStore()

    worker = Worker(
        WorkerSettings("w"), opened, cast(Any, Broker()), tmp_path, WorkerMetrics(), Stop()
    )
    worker._clock = cast(Any, clock)
    assert worker._reached() is not None
    assert max(pauses["store"]) > 2.5
    assert max(pauses["broker"][1:]) <= FIRST_SECONDS


def test_a_worker_is_ready_once_it_takes_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not while it compiles kernels, and not before it has reached its broker."""
    said: list[str] = []

    class Broker(MemoryBroker):
        def depths(self) -> Mapping[Lane, int]:
            said.append("asked")
            if said.count("asked") == 1:
                raise BrokerError("away")
            return super().depths()

        def consume(self, *lanes: Sequence[Lane]) -> Any:
            said.append("consumes")
            return super().consume(*lanes)

    worker = Worker(
        WorkerSettings("w"), MemoryStore, cast(Any, Broker()), tmp_path, WorkerMetrics(), Stop()
    )
    monkeypatch.setattr(process, "warm_up", lambda compute: said.append("compiles"))
    monkeypatch.setattr(process, "memory_bound", lambda *_, **__: nullcontext())

    def ready() -> None:
        said.append("ready")
        worker.stop.request("enough")

    worker.on_ready = ready
    worker._work()
    assert said == ["compiles", "asked", "asked", "consumes", "ready"]
