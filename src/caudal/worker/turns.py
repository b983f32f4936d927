"""Lets tasks share a process, or lets one task run alone.

Memory cannot be attributed to threads: if one task takes too much, tasks beside it are refused
memory, too. So a task that was short of memory runs again while no other task runs. Only if it
fails then is it to blame.
"""

import contextlib
import threading
from collections.abc import Iterator


class SharedTurns:
    """A lock for any number of shared tasks or one alone. One that waits to be alone goes first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._alone = 0  # tasks that wait to run alone, or do

    @property
    def waits(self) -> bool:
        """Return whether a task waits to run alone, or runs alone."""
        return self._alone > 0

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self.waits)
            self._running += 1
        try:
            yield
        finally:
            self._leave()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._alone += 1
            self._changed.wait_for(lambda: not self._running)
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._alone -= 1
            self._leave()

    def _leave(self) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()
