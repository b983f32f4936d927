"""The frame of a process that works in a thread: its own loop ticks and hears signals meanwhile.

Rules
1. The main thread runs an asyncio loop that does nothing long: ticks, and signals.
2. The work runs in one thread, asks `stop` between its turns, and is given `grace_seconds` to end
   after it was asked; from `late_seconds` on it is urged, again and again, by `on_late`. Then it is
   abandoned: the caller ends the process, and whoever waits for the work (the broker, for a task)
   gives it to another.
3. A work that ends by itself ends the frame; what it raised is raised here.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from caudal.process.signals import Stop, stop_on_signals
from caudal.process.ticks import OnTick, ignore, ticking

_URGE_SECONDS = 0.25


class ProcessExit(Enum):
    """How the work ended."""

    COMPLETE = "it ended by itself"
    ABANDONED = "it was still busy when its time was over"


def run_framed(
    work: Callable[[], None],
    stop: Stop,
    *,
    on_tick: OnTick = ignore,
    on_late: Callable[[], None] = lambda: None,
    late_seconds: float = 4.0,
    grace_seconds: float = 8.0,
) -> ProcessExit:
    """Run `work` in a thread until it ends, or until it has been asked to and did not in time."""
    patience = _Patience(on_late, late_seconds, grace_seconds)
    return asyncio.run(_framed(_Work(work), stop, on_tick, patience))


@dataclass(frozen=True)
class _Patience:
    on_late: Callable[[], None]
    late_seconds: float
    grace_seconds: float

    async def wait(self, ended: asyncio.Event) -> None:
        """Until it has ended, or the time is over."""
        loop = asyncio.get_running_loop()
        asked, pause = loop.time(), self.late_seconds
        while loop.time() - asked < self.grace_seconds:
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), min(pause, self.grace_seconds))
                return
            self.on_late()
            pause = _URGE_SECONDS


class _Work(threading.Thread):
    """The thread. A daemon, since an abandoned one must not hold the process back."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(name="work", daemon=True)
        self._work = work
        self._ended: Callable[[], object] = lambda: None
        self.error: BaseException | None = None

    def begin(self, ended: Callable[[], object]) -> None:
        self._ended = ended
        self.start()

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.error = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any longer
            self._ended()


async def _framed(work: _Work, stop: Stop, on_tick: OnTick, patience: _Patience) -> ProcessExit:
    loop = asyncio.get_running_loop()
    ended, asked = asyncio.Event(), asyncio.Event()
    stop_on_signals(loop, stop, asked.set)
    ticks = asyncio.create_task(ticking(on_tick))
    work.begin(lambda: loop.call_soon_threadsafe(ended.set))
    try:
        waits = [asyncio.create_task(event.wait()) for event in (ended, asked)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await patience.wait(ended)
    finally:
        ticks.cancel()
    if not ended.is_set():
        return ProcessExit.ABANDONED
    work.join()  # only its last instructions are left; else what it holds may outlive the process
    if work.error is not None:
        raise work.error
    return ProcessExit.COMPLETE
