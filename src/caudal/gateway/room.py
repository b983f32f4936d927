"""Room for what is under way: threads, bodies, requests. What does not fit is refused, not queued.

All but the threads themselves is for one event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from threading import Lock
from typing import TypeVar

from caudal.gateway.refusals import later

Answer = TypeVar("Answer")


class Threads:
    """Where everything runs that waits for a store, a broker or DuckDB."""

    def __init__(self, count: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._running = 0
        self._lock = Lock()

    async def run(self, work: Callable[..., Answer], *arguments: object) -> Answer:
        """The outcome of the work, whose waiting does not hold the loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._counted, work, *arguments)

    @property
    def busy(self) -> bool:
        """Is anything still running?"""
        return self._running > 0

    def _counted(self, work: Callable[..., Answer], *arguments: object) -> Answer:
        with self._lock:
            self._running += 1
        try:
            return work(*arguments)
        finally:
            with self._lock:
                self._running -= 1

    async def each(self, items: Iterator[Answer]) -> AsyncIterator[Answer]:
        """The items, each made in a thread."""
        nothing = object()
        while (item := await self.run(next, items, nothing)) is not nothing:
            yield item

    def close(self) -> None:
        """Threads that are stuck are left behind."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Places:
    """A number of places: whoever finds none comes again later."""

    def __init__(self, count: int, what: str) -> None:
        self._left = count
        self._what = what

    @contextmanager
    def one(self) -> Iterator[None]:
        if self._left == 0:
            raise later(
                "busy", f"too many {self._what} are under way here: try again, or elsewhere"
            )
        self._left -= 1
        try:
            yield
        finally:
            self._left += 1


class Bodies:
    """Bytes of bodies in memory. A body waits for room for a while: its sender feels that."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._left = most
        self._seconds = seconds
        self._freed = asyncio.Condition()

    @asynccontextmanager
    async def holding(self, size: int) -> AsyncIterator[None]:
        size = min(size, self._most)
        async with self._freed:
            try:
                async with asyncio.timeout(self._seconds):
                    await self._freed.wait_for(lambda: self._left >= size)
            except TimeoutError:
                raise later("busy", "too many batches are on their way: try again") from None
            self._left -= size
        try:
            yield
        finally:
            self._left += size
            async with self._freed:
                self._freed.notify_all()
