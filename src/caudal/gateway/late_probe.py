"""Tests the store of a gateway without letting a store that hangs or is away keep it from serving.

Rules
1. The gateway waits for the test for a few seconds only. Then it serves, and clients are told that
   the store is away (503). While it waited, its port was closed, and medics that heard no heartbeat
   for long killed it, again and again.
2. A store that is away was not tested: the test is repeated until there is an answer.
3. A store that breaks its promise ends the gateway, whenever that is found.
4. The thread is a daemon: a request to a store that hangs does not keep the process from ending.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread

from caudal.errors import StoreError
from caudal.jobs.await_services import waited_for
from caudal.jobs.interfaces import Clock
from caudal.process.heart import Heart
from caudal.process.logs import fields
from caudal.process.signals import Stop

WAIT_SECONDS = 10.0  # a server that lets races wait takes about five (store/probe.py)
_MOST_PAUSE_SECONDS = 30.0  # between two tests

_log = logging.getLogger(__name__)


@dataclass
class LateProbe:
    """One test of the store. `probe` raises StoreError if the store is away, else what it found."""

    probe: Callable[[], None]
    clock: Clock
    stop: Stop
    _tried: Event = field(default_factory=Event, init=False)
    _found: Exception | None = field(default=None, init=False)

    def begin(self, beating: Heart | None = None) -> None:
        """Begin to test. Wait a few seconds, with heartbeats, and raise what was found."""
        Thread(target=self.run, name="store probe", daemon=True).start()
        if beating is None:
            self._tried.wait(WAIT_SECONDS)
        else:
            beating.awaiting(self._tried.wait, WAIT_SECONDS)
        if not self._tried.is_set():
            _log.warning("the store does not answer yet", extra=fields(seconds=WAIT_SECONDS))
        self.require()

    def require(self) -> None:
        """Raise what was found until now, if the store cannot be used."""
        if self._found is not None:
            raise self._found

    def run(self) -> None:
        """Test until there is an answer, or until asked to stop. Runs in a thread of its own."""
        waited_for(
            "store",
            self._try,
            StoreError,
            self.clock,
            self.stop.requested,
            most_seconds=_MOST_PAUSE_SECONDS,
        )

    def _try(self) -> None:
        try:
            self.probe()
        except StoreError:
            raise
        except Exception as found:  # raised by `require`, on the main thread
            self._found = found
            self.stop.request("the store cannot be used")
        finally:
            self._tried.set()
