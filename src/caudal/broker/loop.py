"""An asyncio loop on its own thread, with synchronous calls from other threads.

So heartbeats continue whatever the callers compute, and the callers stay plain synchronous code.
"""

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from caudal.broker.port import BrokerError

Value = TypeVar("Value")

_log = logging.getLogger(__name__)


class LoopThread:
    """A thread that runs coroutines.

    Coroutines limit their own time. `patience_seconds` is a limit for a loop that hangs.
    """

    def __init__(self, patience_seconds: float) -> None:
        self._patience_seconds = patience_seconds
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_note)
        self._thread = threading.Thread(target=self._run, name="broker", daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        """Run a coroutine on the loop and wait for its result.

        Do not call this on the loop itself.
        """
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise BrokerError("the connection to RabbitMQ is closed") from None
        try:
            return future.result(self._patience_seconds)
        except (concurrent.futures.CancelledError, TimeoutError) as error:
            future.cancel()
            raise BrokerError("RabbitMQ did not answer in time") from error

    def close(self) -> None:
        """Cancel the coroutines that still run, then end the thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop):
            self._loop.run_forever()


def _note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception of a library's own task that no caller waits for any more."""
    _log.debug("error in the event loop: %s", context.get("exception") or context.get("message"))
