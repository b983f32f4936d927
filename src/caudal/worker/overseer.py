"""Asking, while one thread computes, whether it may go on; and interrupting it if not.

Rules
1. The first question comes after a quarter of a second: short computations cost nothing.
2. Once told to stop, the computation is interrupted again and again until it has ended: DuckDB
   may just be between two queries, and what comes then would go on.
3. Nothing is interrupted after its end: the next computation is another one's.
"""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from caudal.jobs.interfaces import MayGoOn, go_on

_ASK_SECONDS, _INTERRUPT_SECONDS = 0.25, 0.05


class Overseer:
    """Watches over one computation, for as long as the block lasts."""

    def __init__(self, beat: MayGoOn, interrupt: Callable[[], None]) -> None:
        self._beat = beat
        self._interrupt = interrupt
        self._over = threading.Event()
        self._ending = threading.Lock()
        self.stopped = threading.Event()

    def __enter__(self) -> Self:
        if self._beat is not go_on:
            threading.Thread(target=self._watch, name="overseer", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._ending:  # rule 3
            self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(_ASK_SECONDS):
            if not self._beat():
                break
        while not self._over.is_set():
            with self._ending:
                if not self._over.is_set():
                    self.stopped.set()
                    self._interrupt()
            self._over.wait(_INTERRUPT_SECONDS)
