"""Doing many things at a time, with results in order and nothing left running after an error."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


class Workers:
    """Some threads; with one, everything happens in the caller's, in order."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def each(self, do: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        """Do something with each item.

        After an error no item is begun any more, those that were begun are waited for, and the
        first error is raised: so nothing of ours comes late.
        """
        if self._pool is None:
            return [do(item) for item in items]
        futures = [self._pool.submit(do, item) for item in items]
        wait(futures, return_when=FIRST_EXCEPTION)
        for future in futures:
            future.cancel()
        wait(futures)
        for future in futures:
            if not future.cancelled() and (error := future.exception()) is not None:
                raise error
        return [future.result() for future in futures]
