"""The endless loops of processes. They call `stopping` between turns and never interrupt a turn."""

import contextlib
from collections.abc import Callable

from caudal.broker.port import Consumer
from caudal.errors import StoreError
from caudal.jobs import execute
from caudal.jobs.interfaces import Clock
from caudal.jobs.ports import Ports


def work(ports: Ports, consumer: Consumer, stopping: Callable[[], bool]) -> None:
    """Execute tasks until stopped; then hand back the messages that are still held."""
    while not stopping():
        execute.take_turn(ports, consumer)
    consumer.close()


def rounds(
    clock: Clock, seconds: float, round_: Callable[[], None], stopping: Callable[[], bool]
) -> None:
    """Run rounds of a reconciler or janitor with pauses. A failure waits for the next round."""
    while not stopping():
        with contextlib.suppress(StoreError):
            round_()
        clock.sleep(seconds)
