"""The endless loops of processes. `stopping` is asked between turns: a turn is never cut short."""

import contextlib
from collections.abc import Callable

from caudal.broker.port import Consumer
from caudal.errors import StoreError
from caudal.jobs import execute
from caudal.jobs.interfaces import Clock
from caudal.jobs.ports import Ports


def work(ports: Ports, consumer: Consumer, stopping: Callable[[], bool]) -> None:
    """A worker's life; what it still holds at the end is handed back."""
    while not stopping():
        execute.take_turn(ports, consumer)
    consumer.close()


def rounds(
    clock: Clock, seconds: float, round_: Callable[[], None], stopping: Callable[[], bool]
) -> None:
    """A reconciler's or janitor's life: a round, a pause. What fails is left to the next round."""
    while not stopping():
        with contextlib.suppress(StoreError):
            round_()
        clock.sleep(seconds)
