"""Real time and random ids for the ports of the task engine (jobs/interfaces.py)."""

import secrets
import time

from caudal.process.signals import Stop


class SystemClock:
    """The machine's clock. A sleep ends early when the process is asked to stop."""

    def __init__(self, stop: Stop | None = None) -> None:
        self._stop = stop or Stop()

    def now(self) -> float:
        """See the port."""
        return time.time()

    def elapsed(self) -> float:
        """See the port."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """See the port."""
        self._stop.wait(seconds)


def new_id() -> str:
    """Return a unique id: 128 random bits."""
    return secrets.token_hex(16)
