"""The frame of a process that works in a thread, while its main loop ticks and handles signals.

Rules
1. The main thread runs an asyncio loop without long steps: only ticks and signals.
2. The work runs in one thread and checks `stop` between its turns. After the request to stop it
   has `grace_seconds` to end. From `late_seconds` on, `on_late` is called repeatedly to urge it.
   Then the work is abandoned: the caller ends the process, and the work is given to another
   process (for a task, by the broker).
3. When the work ends by itself, the frame ends; an exception of the work is raised here.
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
    """Run `work` in a thread until it ends, or until its time to stop is over."""
    patience = _Patience(on_late, late_seconds, grace_seconds)
    return asyncio.run(_framed(_Work(work), stop, on_tick, patience))


@dataclass(frozen=True)
class _Patience:
    on_late: Callable[[], None]
    late_seconds: float
    grace_seconds: float

    async def wait(self, ended: asyncio.Event) -> None:
        """Wait until the work has ended, or the time is over."""
        loop = asyncio.get_running_loop()
        asked, pause = loop.time(), self.late_seconds
        while loop.time() - asked < self.grace_seconds:
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), min(pause, self.grace_seconds))
                return
            self.on_late()
            pause = _URGE_SECONDS


class _Work(threading.Thread):
    """The thread of the work; a daemon, so that an abandoned one does not block the exit."""

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
        with suppress(RuntimeError):  # the loop is closed: nothing waits any longer
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
    work.join()  # waits for its last instructions only; its objects must not outlive the process
    if work.error is not None:
        raise work.error
    return ProcessExit.COMPLETE
