"""A process that works in a thread: ticks go on, signals ask, what is still busy is abandoned."""

import os
import signal
import threading
import time

import pytest
from tests.harness.waiting import GUARD_SECONDS

from caudal.process.clock import SystemClock, new_id
from caudal.process.frame import ProcessExit, run_framed
from caudal.process.signals import Stop
from caudal.process.ticks import Tick, next_moment


def test_a_signal_asks_the_work_to_stop() -> None:
    stop = Stop()

    def work() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(GUARD_SECONDS)

    assert run_framed(work, stop) is ProcessExit.COMPLETE
    assert stop.reason == "SIGTERM"


def test_the_loop_ticks_while_the_work_computes() -> None:
    ticks: list[Tick] = []
    second = threading.Event()

    def on_tick(tick: Tick) -> None:
        ticks.append(tick)
        if tick.number == 2:
            second.set()

    assert run_framed(lambda: _require(second.wait(GUARD_SECONDS)), Stop(), on_tick=on_tick)
    assert [tick.number for tick in ticks[:2]] == [1, 2]


def test_a_tick_that_fails_does_not_end_the_ticking(caplog: pytest.LogCaptureFixture) -> None:
    second = threading.Event()

    def on_tick(tick: Tick) -> None:
        if tick.number == 2:
            second.set()
        raise ValueError("no")

    run_framed(lambda: _require(second.wait(GUARD_SECONDS)), Stop(), on_tick=on_tick)
    assert "a tick failed" in caplog.text


def test_what_is_still_busy_is_abandoned() -> None:
    release = threading.Event()

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        release.wait(GUARD_SECONDS)

    assert run_framed(work, Stop(), grace_seconds=0.01) is ProcessExit.ABANDONED
    release.set()


def test_what_is_late_is_urged() -> None:
    urged = threading.Event()

    def work() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        assert urged.wait(GUARD_SECONDS)

    ending = run_framed(work, Stop(), on_late=urged.set, late_seconds=0.01, grace_seconds=60)
    assert ending is ProcessExit.COMPLETE


def test_what_the_work_raises_is_raised() -> None:
    def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_framed(work, Stop())


def test_a_sleep_ends_when_the_process_should() -> None:
    stop = Stop()
    stop.request("test")
    clock, begun = SystemClock(stop), time.monotonic()
    clock.sleep(3600)
    assert clock.elapsed() - begun < 3600
    assert clock.now() > 0
    assert new_id() != new_id()


def _require(fact: bool) -> None:
    assert fact


def test_all_processes_tick_at_the_same_moments() -> None:
    moments = [next_moment(now, 0.5) for now in (7.0, 7.2, 7.499, 7.5, 7.9)]
    assert moments == [7.5, 7.5, 7.5, 8.0, 8.0]
