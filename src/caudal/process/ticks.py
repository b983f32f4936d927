"""Ticks: the sign of life of a process's own loop.

`on_tick` is called on the loop itself, twice a second. So a stuck process falls silent, while an
idle one, or one whose worker thread computes for minutes, does not. `on_tick` must not block.

All processes of a host tick at the same moments of their shared monotonic clock. One wake-up of
the machine for all of them, and medics that read all heartbeats at once, cost less than many
wake-ups spread over time.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

TICK_SECONDS = 0.5

# A loop without a tick for so long hangs. An overloaded machine delays a tick by seconds, and so
# does a library that keeps all threads waiting; who is restarted for that never gets anything done.
HANGING_SECONDS = 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tick:
    """The number of this tick, starting with 1, and its delay."""

    number: int
    late_seconds: float


OnTick = Callable[[Tick], object]


def ignore(tick: Tick) -> None:
    """Do nothing; for a process without listeners."""


class LastTick:
    """When a loop ticked last, for threads that answer whether it still runs."""

    def __init__(self, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._elapsed = elapsed
        self._at: float | None = None  # None: the loop has not begun, the process loads

    def noted(self, on_tick: OnTick) -> OnTick:
        """Return the same `on_tick`, whose calls are noted here."""

        def note(tick: Tick) -> None:
            self._at = self._elapsed()
            on_tick(tick)

        return note

    def is_recent(self) -> bool:
        """Return False while the loop hangs. Before its first tick it does not."""
        at = self._at
        return at is None or self._elapsed() - at <= HANGING_SECONDS


async def ticking(on_tick: OnTick, seconds: float = TICK_SECONDS) -> None:
    """Tick until cancelled. A failed tick is logged, and the next one follows as usual."""
    loop = asyncio.get_running_loop()
    number, due = 0, loop.time()
    while True:
        number += 1
        try:
            on_tick(Tick(number, max(0.0, loop.time() - due)))
        except Exception:
            _log.exception("a tick failed")
        due = next_moment(loop.time(), seconds)
        await asyncio.sleep(due - loop.time())


def next_moment(now: float, seconds: float) -> float:
    """Return the next of the moments, `seconds` apart, that all processes of a host share.

    >>> [next_moment(now, 0.5) for now in (7.0, 7.2, 7.5, 7.9)]
    [7.5, 7.5, 8.0, 8.0]
    """
    return (now // seconds + 1) * seconds
