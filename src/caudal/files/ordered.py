"""Parallel work with outcomes in the order of the items."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Condition
from typing import Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

_LOOK_SECONDS = 0.25  # how often a pile is looked at although nothing new was made


def in_order(
    pool: ThreadPoolExecutor,
    work: Callable[[Item], Outcome],
    items: Iterable[Item],
    *,
    ahead: int,
) -> Generator[Outcome]:
    """Yield outcomes in the order of the items; at most `ahead` items are queued or running."""
    flying: deque[Future[Outcome]] = deque()
    try:
        for item in items:
            flying.append(pool.submit(work, item))
            if len(flying) > ahead:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()
    except Exception:  # wait for running calls before anything else starts, but not after Ctrl-C
        wait([future for future in flying if not future.cancel()])
        raise
    finally:
        for future in flying:
            future.cancel()


class Pile(Generic[Item]):
    """Items that another thread makes while earlier ones are in use. The thread pauses while items
    of the size `most` wait. `enough` says how many of those that wait are worth taking while more
    are made; without it, all of them are."""

    def __init__(
        self,
        items: Iterator[Item],
        size: Callable[[Item], int],
        most: int,
        enough: Callable[[Sequence[Item]], int] = len,
    ) -> None:
        self._items, self._size, self._most, self._enough = items, size, most, enough
        self._waiting: list[Item] = []
        self._held = 0
        self._is_over = self._is_closed = False
        self._changed = Condition()

    def taken(self) -> Generator[list[Item]]:
        """Yield items that wait, again and again; then raise the error of making them, if any.
        Close it: then it waits for the item that is being made."""
        with ThreadPoolExecutor(1, "ahead") as pool:
            making = pool.submit(self._make)
            try:
                while items := self._take():
                    yield items
                making.result()
            finally:
                with self._changed:
                    self._is_closed = True
                    self._changed.notify_all()

    def _take(self) -> list[Item]:
        with self._changed:
            while not self._changed.wait_for(self._is_ready, _LOOK_SECONDS):
                pass  # what is enough may depend on the time
            count = self._enough(self._waiting) or len(self._waiting)
            items, self._waiting = self._waiting[:count], self._waiting[count:]
            self._held -= sum(map(self._size, items))
            self._changed.notify_all()
            return items

    def _is_ready(self) -> bool:
        return self._is_over or self._held >= self._most or self._enough(self._waiting) > 0

    def _make(self) -> None:
        try:
            for item in self._items:
                with self._changed:
                    self._waiting.append(item)
                    self._held += self._size(item)
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._held < self._most or self._is_closed)
                    if self._is_closed:
                        return
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()
