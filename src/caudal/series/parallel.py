"""Parallel work with results in order. After an error nothing is left running."""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


class WorkerPool:
    """A pool of threads. With one thread, all work is done in the caller's thread, in order."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def each(self, do: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        """Call `do` for each item and return the results in order.

        After an error no further item is started. Running items are waited for, and then the first
        error is raised, so nothing runs after the return. Ctrl-C starts no further item and waits
        for none.
        """
        if self._pool is None:
            return [do(item) for item in items]
        left, made = deque(enumerate(items)), dict[int, Made]()
        count = len(left)
        # Each thread takes item after item. Waking a thread for every item would often cost more
        # than the work itself.
        turns = range(min(self.threads, count))
        futures = [self._pool.submit(_take_turns, do, left, made) for _ in turns]
        try:
            wait(futures)
        except BaseException:
            left.clear()
            raise
        for future in futures:
            future.result()
        return [made[place] for place in range(count)]


def _take_turns(
    do: Callable[[Item], Made], left: deque[tuple[int, Item]], made: dict[int, Made]
) -> None:
    try:
        while True:
            try:
                place, item = left.popleft()
            except IndexError:
                return
            made[place] = do(item)
    except BaseException:
        left.clear()
        raise
