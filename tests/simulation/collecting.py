"""Python's garbage collector would take a third of a run's time: it works between runs instead."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RUNS = 20  # between two collections


class Collector:
    """Rests while a run lasts. What runs share is set aside, so that nobody walks it again."""

    def __init__(self) -> None:
        self._runs = 0

    @contextmanager
    def resting(self) -> Iterator[None]:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            self._runs += 1
            if self._runs % RUNS == 0:
                gc.collect()
                gc.freeze()
            if was_enabled:
                gc.enable()


COLLECTOR = Collector()
