"""Ended jobs rest: loops look at them once, then rarely. So they cost almost nothing.

Rules
1. A run that has its outcome never continues. So a loop that saw the outcome need not look at the
   run in every round: it *rests*, which means that the loop skips it until a given time.
2. A run that is no longer listed is forgotten, and no rest is longer than `Bounds.rest_seconds`.
3. This memory may be lost at any time. That costs one look at each run.
"""

from collections.abc import Collection
from threading import Lock
from zlib import crc32

from caudal.jobs.job_index import Mark


class Resting:
    """The runs that each loop skips for a while. Thread-safe."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], float] = {}
        self._lock = Lock()

    def rest(self, loop: str, mark: Mark, until: float) -> None:
        """Skip a run until that time of the clock that never jumps."""
        with self._lock:
            self._until[loop, mark.name] = until

    def awake(self, loop: str, marks: Collection[Mark], now: float) -> list[Mark]:
        """Return those of the listed runs that this loop should look at now.

        `marks` must be all runs that this loop looks after: others are forgotten.
        """
        with self._lock:
            listed = {mark.name for mark in marks}
            for name in [one for one in self._until if one[0] == loop and one[1] not in listed]:
                del self._until[name]
            return [mark for mark in marks if self._until.get((loop, mark.name), now) <= now]


def spread(mark: Mark, seconds: float) -> float:
    """Return between half and all of that time, depending on the run.

    So rests end one by one, although a new gateway sees all of them in its first round.

    >>> 150.0 <= spread(Mark("k", "j", "r"), 300.0) <= 300.0
    True
    """
    return seconds * (0.5 + 0.5 * (crc32(mark.name.encode()) / 0xFFFFFFFF))
