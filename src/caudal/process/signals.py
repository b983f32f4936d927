"""The wish to stop: asked for once, seen by every thread.

`Stop.request` takes a lock, so it is never called from a bare signal handler: `stop_on_signals`
lets the process's own asyncio loop call it, between two of its steps.
"""

import asyncio
import signal
import threading
from collections.abc import Callable

ASKING = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """Whether this process should end. `reason` is what asked first."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.reason = ""

    def request(self, reason: str) -> None:
        """Ask; from any thread, as often as one likes."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    def requested(self) -> bool:
        """What loops ask between two turns."""
        return self._event.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Pause until asked to stop; False if nobody did in that time."""
        return self._event.wait(seconds)


def stop_on_signals(
    loop: asyncio.AbstractEventLoop,
    stop: Stop,
    asked: Callable[[], None] = lambda: None,
) -> None:
    """SIGTERM and SIGINT ask to stop, then call `asked` on the loop. Main thread only."""

    def handle(number: signal.Signals) -> None:
        stop.request(number.name)
        asked()

    for number in ASKING:
        loop.add_signal_handler(number, handle, number)
