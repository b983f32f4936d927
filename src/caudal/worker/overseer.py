"""Checks repeatedly, while another thread computes, whether it may continue; if not, interrupts it.

Rules
1. The first check comes after a quarter of a second, so short computations cost nothing.
2. After a negative answer, the computation is interrupted repeatedly until it has ended. DuckDB
   may be between two queries, and one interrupt would not stop the next query.
3. Nothing is interrupted after the computation's end: the next one belongs to another task.
"""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from caudal.jobs.interfaces import MayGoOn, go_on

_ASK_SECONDS, _INTERRUPT_SECONDS = 0.25, 0.05


class Overseer:
    """The watcher of one computation, which is the `with` block."""

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
