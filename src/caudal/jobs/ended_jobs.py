"""Jobs that have ended are looked at once, and then rarely: thousands of them cost next to nothing.

Rules
1. A life that has its outcome never runs again, so whoever saw the outcome need not look again in
   every round. What it knows by that is a *rest*: the job is passed over until the rest is over.
2. An id may be given a new life once the former job.json is gone. Whoever creates one here wakes
   the id (`wake`). An id that is not listed is forgotten, and no rest is longer than
   `Bounds.rest_seconds`: so a new life that another gateway began is noticed too, and that gateway
   looks after it meanwhile.
3. What is remembered may be lost at any time: that costs one look at each job.
"""

from collections.abc import Collection
from threading import Lock
from zlib import crc32


class Resting:
    """Which jobs rest for which loop. For any number of threads."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], float] = {}
        self._lock = Lock()

    def rest(self, loop: str, job: str, until: float) -> None:
        """Pass over a job until then, by the clock that never jumps."""
        with self._lock:
            self._until[loop, job] = until

    def awake(self, loop: str, jobs: Collection[str], now: float) -> list[str]:
        """Those of all jobs that there are that this loop should look at now."""
        with self._lock:
            listed = set(jobs)
            for name in [one for one in self._until if one[0] == loop and one[1] not in listed]:
                del self._until[name]
            return [job for job in jobs if self._until.get((loop, job), now) <= now]

    def wake(self, job: str) -> None:
        """This id was given a new life."""
        with self._lock:
            for name in [one for one in self._until if one[1] == job]:
                del self._until[name]


def spread(job: str, seconds: float) -> float:
    """Between half and all of that time, different for different jobs: they end their rests one
    by one although a gateway saw all of them in its first round.

    >>> 150.0 <= spread("j", 300.0) <= 300.0
    True
    """
    return seconds * (0.5 + 0.5 * (crc32(job.encode()) / 0xFFFFFFFF))
