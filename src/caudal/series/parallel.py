"""Doing many things at a time, with results in order and nothing left running after an error."""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


class WorkerPool:
    """Some threads; with one, everything happens in the caller's, in order."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def each(self, do: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        """Do something with each item.

        After an error no item is begun any more, those that were begun are waited for, and the
        first error is raised: so nothing of ours comes late. Ctrl-C waits for none and begins none.
        """
        if self._pool is None:
            return [do(item) for item in items]
        left, made = deque(enumerate(items)), dict[int, Made]()
        count = len(left)
        # A thread takes item after item: waking one for every item would cost more than many do.
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
