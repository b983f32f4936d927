"""When a child that does not become ready is given up."""

import os

from caudal.gateway.start_patience import CPU_SECONDS, IDLE_SECONDS, StartPatience
from caudal.process.records import cpu_seconds_of


def test_one_that_computes_now_and_then_on_a_busy_machine_is_awaited() -> None:
    patience = StartPatience()
    step = IDLE_SECONDS / 2
    assert not any(patience.is_over(number * step, number * 0.01) for number in range(1_000))


def test_one_that_waits_for_what_never_comes_is_given_up() -> None:
    patience = StartPatience()
    assert not patience.is_over(100.0, 1.5)
    assert not patience.is_over(100.0 + IDLE_SECONDS, 1.5)
    assert patience.is_over(100.1 + IDLE_SECONDS, 1.5)


def test_one_that_computes_without_end_is_given_up() -> None:
    assert StartPatience().is_over(7.0, CPU_SECONDS + 0.1)


def test_cpu_time_of_a_process() -> None:
    before = cpu_seconds_of(os.getpid())
    while cpu_seconds_of(os.getpid()) <= before:
        pass
    assert cpu_seconds_of(0) == 0.0
