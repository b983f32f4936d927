"""Waiting for what is away: patient, quiet, and not for ever if told so."""

from dataclasses import dataclass

import pytest
from tests.services.clock import HandClock

from caudal.errors import StoreError, UsageError
from caudal.worker.await_services import waited_for


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
        "waiting for the store", "the store is there",
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
