"""A store that hangs or is away does not keep a gateway from serving; one that lies ends it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from tests.harness.hand_clock import HandClock
from tests.harness.waiting import GUARD_SECONDS, until

from caudal.errors import StoreError, UsageError
from caudal.gateway import late_probe
from caudal.gateway.late_probe import LateProbe
from caudal.process.clock import SystemClock
from caudal.process.signals import Stop
from caudal.store import MemoryStore, Store, require_conditional_create


class Lying(MemoryStore):
    """Lets a second create overwrite the first."""

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        self.replace(key, data)


class Away(MemoryStore):
    """Refuses so many creates, then passes them on to another store."""

    def __init__(self, refusals: int, behind: Store) -> None:
        super().__init__()
        self.refusals, self.behind = refusals, behind

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        self.refusals -= 1
        if self.refusals >= 0:
            raise StoreError("away")
        self.behind.create(key, data, lasting=lasting)

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.behind.read(key, offset, length)


class Hanging(Lying):
    """Answers no create before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may_answer = Event(), Event()

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        self.asked.set()
        self.may_answer.wait(GUARD_SECONDS)
        super().create(key, data, lasting=lasting)


def probe_of(store: Store, clock: HandClock | SystemClock | None = None) -> LateProbe:
    stop = Stop()
    test = partial(require_conditional_create, store)
    return LateProbe(test, clock or SystemClock(stop), stop)


@contextmanager
def stopped_after(probe: LateProbe) -> Iterator[LateProbe]:
    """The probe; its thread ends with the test."""
    try:
        yield probe
    finally:
        probe.stop.request("the test ended")


def test_a_good_store_passes() -> None:
    with stopped_after(probe_of(MemoryStore())) as probe:
        probe.begin()
        probe.require()
        assert not probe.stop.requested()


def test_a_store_that_lies_is_refused_at_the_start() -> None:
    with pytest.raises(UsageError, match="overwrite the first"):
        probe_of(Lying()).begin()


def test_an_unexpected_error_is_raised_too() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        LateProbe(fail, HandClock(), Stop()).begin()


def test_one_that_is_away_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_probe, "WAIT_SECONDS", GUARD_SECONDS)
    with stopped_after(probe_of(Away(10**9, MemoryStore()))) as probe:
        probe.begin()
        assert not probe.stop.requested()


def test_one_that_hangs_is_waited_for_a_while_and_ends_the_gateway_if_it_lies(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(late_probe, "WAIT_SECONDS", 0.0)
    store = Hanging()
    with stopped_after(probe_of(store)) as probe:
        probe.begin()
        assert "the store does not answer yet" in caplog.text
        store.asked.wait(GUARD_SECONDS)
        probe.require()
        assert not probe.stop.requested(), "it may serve"
        store.may_answer.set()
        until(probe.stop.requested)
        assert probe.stop.reason == "the store cannot be used"
        with pytest.raises(UsageError, match="overwrite the first"):
            probe.require()


def test_one_that_was_away_is_tested_once_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    clock = HandClock()
    probe = probe_of(Away(20, MemoryStore()), clock)
    probe.run()
    probe.require()
    assert not probe.stop.requested()
    assert caplog.messages == ["waiting for the store", "the store answers"]
    assert len(clock.slept) == 20
    assert all(15 <= pause <= 30 for pause in clock.slept[10:])


def test_one_that_was_away_and_lies_ends_the_gateway() -> None:
    probe = probe_of(Away(3, Lying()), HandClock())
    probe.run()
    assert probe.stop.requested()
    with pytest.raises(UsageError, match="overwrite the first"):
        probe.require()


def test_it_ends_when_the_gateway_does() -> None:
    class Ending(HandClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if self.time > 1_000:
                probe.stop.request("SIGTERM")

    probe = probe_of(Away(10**9, MemoryStore()), Ending())
    probe.run()
    probe.require()
    assert probe.stop.reason == "SIGTERM"
