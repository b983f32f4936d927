"""Ended jobs rest: loops look at them once, then rarely. So thousands of them cost almost nothing.

Rules
1. A run that has its outcome never continues. So a loop that saw the outcome need not look at the
   job in every round: the job *rests*, which means that the loop skips it until a given time.
2. An id may get a new run after the old job.json was deleted. A gateway that creates one wakes the
   id (`wake`). An id that is no longer listed is forgotten, and no rest is longer than
   `Bounds.rest_seconds`. So a run that another gateway created is noticed too; until then, that
   gateway looks after it.
3. This memory may be lost at any time. That costs one look at each job.
"""

from collections.abc import Collection
from threading import Lock
from zlib import crc32


class Resting:
    """The jobs that each loop skips for a while. Thread-safe."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], float] = {}
        self._lock = Lock()

    def rest(self, loop: str, job: str, until: float) -> None:
        """Skip a job until that time of the clock that never jumps."""
        with self._lock:
            self._until[loop, job] = until

    def awake(self, loop: str, jobs: Collection[str], now: float) -> list[str]:
        """Return those of the listed jobs that this loop should look at now.

        `jobs` must be all jobs that exist: others are forgotten.
        """
        with self._lock:
            listed = set(jobs)
            for name in [one for one in self._until if one[0] == loop and one[1] not in listed]:
                del self._until[name]
            return [job for job in jobs if self._until.get((loop, job), now) <= now]

    def wake(self, job: str) -> None:
        """End the rest of this id in all loops, because it has a new run."""
        with self._lock:
            for name in [one for one in self._until if one[1] == job]:
                del self._until[name]


def spread(job: str, seconds: float) -> float:
    """Return between half and all of that time, depending on the job's id.

    So rests end one by one, although a new gateway sees all jobs in its first round.

    >>> 150.0 <= spread("j", 300.0) <= 300.0
    True
    """
    return seconds * (0.5 + 0.5 * (crc32(job.encode()) / 0xFFFFFFFF))
