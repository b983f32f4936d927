"""Room for what is under way: threads, bodies, requests. What does not fit is refused, not queued.

All but the threads themselves is for one event loop.
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
"""The owner of the request that this task answers, for whoever shares something out."""


class Threads:
    """Where everything runs that waits for a store, a broker or DuckDB.

    Of one owner at most `each_most` run at once; what is more waits for its own kind.
    """

    def __init__(self, count: int, name: str, each_most: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._turns = defaultdict[str, asyncio.Semaphore](
            lambda: asyncio.Semaphore(each_most or count)
        )
        self._running = 0
        self._lock = Lock()

    async def run(self, work: Callable[..., Answer], *arguments: object) -> Answer:
        """The outcome of the work, whose waiting does not hold the loop."""
        turns = self._turns[ASKING.get()]
        await turns.acquire()
        loop = asyncio.get_running_loop()
        try:
            running = loop.run_in_executor(self._pool, self._counted, work, *arguments)
        except BaseException:
            turns.release()
            raise
        running.add_done_callback(lambda done: _ended(done, turns))
        return await asyncio.shield(running)  # who leaves early frees no thread

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


def _ended(done: "asyncio.Future[Answer]", turns: asyncio.Semaphore) -> None:
    turns.release()
    with suppress(asyncio.CancelledError):
        done.exception()  # it was seen, also where nobody waits any more


class RequestPlaces:
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


class Turns:
    """Turns at something scarce. Owners come one after the other, however much each of them asks;
    none is given all turns as long as there are several, so that others never wait for it alone."""

    def __init__(self, count: int, waiting: int, each: int, seconds: float) -> None:
        self._left = count
        self._share = max(1, count - 1)
        self._waiting_most, self._each, self._seconds = waiting, each, seconds
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._last: dict[str, int] = {}  # which turn each owner was given last
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
            raise later("busy", "too many jobs wait to be planned: try again, or elsewhere")
        if len(waiting) >= self._each:
            raise later("busy", f"{self._each} of your jobs wait to be planned: try again later")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        self._hand_out()
        try:
            async with asyncio.timeout(self._seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._end(owner)  # it was given in the very moment in which nobody waited any more
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
        """Nothing is kept of who neither has a turn nor waits for one."""
        if not self._waiting.get(owner, True):
            del self._waiting[owner]
        if not self._running[owner]:
            del self._running[owner]
            if owner not in self._waiting:
                self._last.pop(owner, None)

    def _hand_out(self) -> None:
        """To whoever waits, has less than its share, and was given a turn longest ago."""
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
    """Bytes of bodies in memory. A body waits for room for a while: its sender feels that.

    A body larger than an owner's whole share is taken when the owner holds nothing else.
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
                raise later("busy", "too many batches are on their way: try again") from None
            self._shares.take(owner, Quota.UPLOADS, mine)
            self._left -= size
        try:
            yield
        finally:
            self._shares.give_back(owner, Quota.UPLOADS, mine)
            self._left += size
            async with self._freed:
                self._freed.notify_all()
