"""An asyncio loop on a thread of its own, called from other threads as if it were synchronous.

So heartbeats go on whatever the callers compute, and the callers stay plain synchronous code.
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
    """Runs coroutines. They bound their own time; `patience_seconds` is for a stuck loop."""

    def __init__(self, patience_seconds: float) -> None:
        self._patience_seconds = patience_seconds
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_note)
        self._thread = threading.Thread(target=self._run, name="broker", daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        """Run it there, wait here. Not from the loop itself."""
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise BrokerError("the way to RabbitMQ is closed") from None
        try:
            return future.result(self._patience_seconds)
        except (concurrent.futures.CancelledError, TimeoutError) as error:
            future.cancel()
            raise BrokerError("RabbitMQ was not heard in time") from error

    def close(self) -> None:
        """End what still runs there, then the thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop):
            self._loop.run_forever()


def _note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What a library's own task raised after nobody waited for it any longer."""
    _log.debug("in the loop: %s", context.get("exception") or context.get("message"))
