"""Tasks that share a process, and one that must have it to itself.

Memory cannot be told apart by thread: whoever runs beside a task that takes too much is refused,
too. So a task that was short of memory runs again when no other does, and only then is to blame.
"""

import contextlib
import threading
from collections.abc import Iterator


class SharedTurns:
    """Any number side by side, or one alone. Whoever waits to be alone goes before newcomers."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._alone = 0  # that wait or run

    @property
    def waits(self) -> bool:
        """Whether somebody wants to be alone, or is."""
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
