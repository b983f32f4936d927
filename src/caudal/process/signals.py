"""The request to stop: made once, visible to every thread.

`Stop.request` takes a lock, so it is never called from a bare signal handler: `stop_on_signals`
lets the process's own asyncio loop call it, between two of its steps.
"""

import asyncio
import signal
import threading
from collections.abc import Callable

ASKING = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """The state of a stop request. `reason` is that of the first request."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.reason = ""

    def request(self, reason: str) -> None:
        """Request the stop; from any thread, any number of times."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    def requested(self) -> bool:
        """Return whether to stop; loops check it between two turns."""
        return self._event.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until asked to stop. Return False if the time is over before."""
        return self._event.wait(seconds)


def stop_on_signals(
    loop: asyncio.AbstractEventLoop,
    stop: Stop,
    asked: Callable[[], None] = lambda: None,
) -> None:
    """Request the stop on SIGTERM and SIGINT, then call `asked` on the loop. Main thread only."""

    def handle(number: signal.Signals) -> None:
        stop.request(number.name)
        asked()

    for number in ASKING:
        loop.add_signal_handler(number, handle, number)
