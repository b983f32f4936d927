"""Answers that everybody may ask for, and that cost a call of the store or the broker.

Rules
1. The call is made at most once a second, whoever asks. Who asks meanwhile gets the last answer.
2. One call at a time: who asks during it waits for the same one. So those who ask hold one thread,
   however many they are, and however long the broker hangs.
3. Nobody waits for longer than a few seconds after the call began. After that they learn at once
   that it still hangs.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from caudal.gateway.room import Threads

Answer = TypeVar("Answer")

KEPT_SECONDS = 1.0
PATIENCE_SECONDS = 5.0


class SharedAnswer(Generic[Answer]):
    """The last answer of a call. For one event loop."""

    def __init__(self, threads: Threads, elapsed: Callable[[], float]) -> None:
        self._threads = threads
        self._elapsed = elapsed
        self._began = 0.0
        self._asking: asyncio.Task[Answer] | None = None

    async def of(self, ask: Callable[[], Answer]) -> Answer:
        """Return what the call answered lately. Raise TimeoutError if it hangs."""
        asking = self._asking
        if asking is None or asking.cancelled() or (asking.done() and self._is_old()):
            self._began = self._elapsed()
            asking = self._asking = asyncio.create_task(self._threads.run(ask))
        left = self._began + PATIENCE_SECONDS - self._elapsed()
        async with asyncio.timeout(max(0.0, left)):
            return await asyncio.shield(asking)  # who gives up ends nobody else's wait

    def _is_old(self) -> bool:
        return self._elapsed() >= self._began + KEPT_SECONDS
