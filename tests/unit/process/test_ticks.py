"""Whether a loop still runs, by its last tick."""

import pytest
from tests.harness.hand_clock import HandClock

from caudal.process.ticks import HANGING_SECONDS, LastTick, Tick, ignore


def test_a_loop_that_has_not_begun_does_not_hang() -> None:
    clock = HandClock()
    last = LastTick(clock.elapsed)
    clock.time += 10 * HANGING_SECONDS
    assert last.is_recent()


def test_a_loop_that_does_not_tick_hangs_until_it_ticks_again() -> None:
    clock = HandClock(1_000.0)
    last = LastTick(clock.elapsed)
    on_tick = last.noted(ignore)
    on_tick(Tick(1, 0.0))
    clock.time += HANGING_SECONDS
    assert last.is_recent()
    clock.time += 0.5
    assert not last.is_recent()
    on_tick(Tick(2, 60.5))
    assert last.is_recent()


def test_a_tick_that_fails_is_a_tick() -> None:
    clock, told = HandClock(), []

    def fail(tick: Tick) -> None:
        told.append(tick)
        raise ValueError("no heartbeat can be sent")

    last = LastTick(clock.elapsed)
    with pytest.raises(ValueError, match="heartbeat"):
        last.noted(fail)(Tick(1, 0.0))
    clock.time += HANGING_SECONDS + 1
    assert (told, last.is_recent()) == ([Tick(1, 0.0)], False)
