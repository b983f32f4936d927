"""Bounded room for work in progress: threads, bodies, requests. Excess is refused, not queued.

Everything except the threads themselves is for one event loop.
"""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from itertools import count as count_from
from threading import Lock
from typing import TypeVar

from caudal.formats.quotas import Quota
from caudal.gateway.refusals import later
from caudal.gateway.shares import Shares

Answer = TypeVar("Answer")

ASKING: ContextVar[str] = ContextVar("ASKING", default="")
"""The owner of the request that the current task answers; used to share resources fairly."""


class Threads:
    """A pool of threads for calls that wait for a store, a broker or DuckDB.

    At most `each_most` calls of one owner run at once; its further calls wait.
    """

    def __init__(self, count: int, name: str, each_most: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._turns = defaultdict[str, asyncio.Semaphore](
            lambda: asyncio.Semaphore(each_most or count)
        )
        self._running = 0
        self._lock = Lock()

    async def run(self, work: Callable[..., Answer], *arguments: object) -> Answer:
        """Run the work in a thread and return its result, without blocking the event loop."""
        turns = self._turns[ASKING.get()]
        await turns.acquire()
        loop = asyncio.get_running_loop()
        try:
            running = loop.run_in_executor(self._pool, self._counted, work, *arguments)
        except BaseException:
            turns.release()
            raise
        running.add_done_callback(lambda done: _ended(done, turns))
        return await asyncio.shield(running)  # a cancelled caller does not free the thread

    @property
    def busy(self) -> bool:
        """Return whether any call is still running."""
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
        """Yield the items, each computed in a thread."""
        nothing = object()
        while (item := await self.run(next, items, nothing)) is not nothing:
            yield item

    def close(self) -> None:
        """Shut the pool down without waiting for stuck threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _ended(done: "asyncio.Future[Answer]", turns: asyncio.Semaphore) -> None:
    turns.release()
    with suppress(asyncio.CancelledError):
        done.exception()  # marks the exception as retrieved, also if no caller waits any more


class RequestPlaces:
    """A number of places for requests. Without a free place a request is refused for now."""

    def __init__(self, count: int, what: str) -> None:
        self._left = count
        self._what = what

    @contextmanager
    def one(self) -> Iterator[None]:
        if self._left == 0:
            raise later("busy", f"too many {self._what} here: try again, or elsewhere")
        self._left -= 1
        try:
            yield
        finally:
            self._left += 1


class WaitPlaces:
    """Places for requests that wait for something. Without a free one, a request does not wait."""

    def __init__(self, count: int) -> None:
        self._most = count
        self._held: Counter[str] = Counter()

    @property
    def held(self) -> int:
        """Return how many are held now."""
        return self._held.total()

    @contextmanager
    def one(self, owner: str, each_most: int) -> Iterator[bool]:
        """Hold a place during the block, unless the owner has as many as it may; yield whether."""
        if self.held >= self._most or self._held[owner] >= each_most:
            yield False
            return
        self._held[owner] += 1
        try:
            yield True
        finally:
            self._held[owner] -= 1
            if not self._held[owner]:
                del self._held[owner]


class Turns:
    """Fair turns at a scarce resource.

    Owners take turns in rotation, however many requests each one makes. If there are several
    turns, no owner gets all of them, so that others never wait for one owner alone.
    """

    def __init__(self, count: int, waiting: int, each: int, seconds: float) -> None:
        self._left = count
        self._share = max(1, count - 1)
        self._waiting_most, self._each, self._seconds = waiting, each, seconds
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._last: dict[str, int] = {}  # number of each owner's latest turn
        self._turns = count_from(1)

    @asynccontextmanager
    async def one(self, owner: str) -> AsyncIterator[None]:
        await self._begin(owner)
        try:
            yield
        finally:
            self._end(owner)

    async def _begin(self, owner: str) -> None:
        waiting = self._waiting.setdefault(owner, deque())
        if sum(map(len, self._waiting.values())) >= self._waiting_most:
            raise later("busy", "too many jobs wait for planning: try again, or elsewhere")
        if len(waiting) >= self._each:
            raise later("busy", f"{self._each} of your jobs wait for planning: try again later")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        self._hand_out()
        try:
            async with asyncio.timeout(self._seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._end(owner)  # the turn was granted just as its waiter gave up
            else:
                waiting.remove(turn)
            if isinstance(error, TimeoutError):
                raise later("busy", "too many jobs are being planned here: try again") from None
            raise
        finally:
            self._forget(owner)

    def _end(self, owner: str) -> None:
        self._left += 1
        self._running[owner] -= 1
        self._forget(owner)
        self._hand_out()

    def _forget(self, owner: str) -> None:
        """Drop the state of an owner that neither has a turn nor waits for one."""
        if not self._waiting.get(owner, True):
            del self._waiting[owner]
        if not self._running[owner]:
            del self._running[owner]
            if owner not in self._waiting:
                self._last.pop(owner, None)

    def _hand_out(self) -> None:
        """Give free turns to waiting owners below their share, least recently served first."""
        while self._left:
            able = [owner for owner in self._waiting if self._may_have(owner)]
            if not able:
                return
            owner = min(able, key=lambda one: self._last.get(one, 0))
            self._last[owner] = next(self._turns)
            self._left -= 1
            self._running[owner] += 1
            self._waiting[owner].popleft().set_result(None)

    def _may_have(self, owner: str) -> bool:
        return bool(self._waiting[owner]) and self._running[owner] < self._share


class Bodies:
    """Memory for request bodies, in bytes.

    A body waits for room for a while, which slows its sender. A body larger than an
    owner's whole share is accepted when the owner holds nothing else.
    """

    def __init__(self, most: int, seconds: float, shares: Shares) -> None:
        self._shares = shares
        self._most = most
        self._left = most
        self._seconds = seconds
        self._freed = asyncio.Condition()

    @asynccontextmanager
    async def holding(self, owner: str, size: int) -> AsyncIterator[None]:
        size = min(size, self._most)
        limit = self._shares.limit(owner, Quota.UPLOADS)
        mine = size if limit is None else min(size, limit)

        def fits() -> bool:
            has_share = self._shares.has_room(owner, Quota.UPLOADS, mine)
            return has_share and self._left >= size

        async with self._freed:
            try:
                async with asyncio.timeout(self._seconds):
                    await self._freed.wait_for(fits)
            except TimeoutError:
                if not self._shares.has_room(owner, Quota.UPLOADS, mine):
                    raise self._shares.refusal(owner, Quota.UPLOADS) from None
                raise later("busy", "too many uploads in progress: try again") from None
            self._shares.take(owner, Quota.UPLOADS, mine)
            self._left -= size
        try:
            yield
        finally:
            self._shares.give_back(owner, Quota.UPLOADS, mine)
            self._left += size
            async with self._freed:
                self._freed.notify_all()
