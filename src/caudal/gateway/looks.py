"""Looks at a job that all streams of a gateway share.

Rules
1. A look at a job serves everybody who asks within FRESH_SECONDS after it began. So a gateway looks
   a few times a second, no matter how many pages show the job.
2. Whoever pauses at least FRESH_SECONDS between two looks never gets an older one than before.
3. A bounded number of looks is kept.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from caudal.formats.replies import JobStatus
from caudal.jobs.interfaces import Clock

FRESH_SECONDS = 0.25
_MOST_KEPT = 256


@dataclass
class _Seen:
    began: float = float("-inf")
    status: JobStatus | None = None
    looking: Lock = field(default_factory=Lock)


class Looks:
    """The newest look at each job. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: OrderedDict[str, _Seen] = OrderedDict()
        self._lock = Lock()  # of the dictionary

    def at(self, run: str, look: Callable[[], JobStatus]) -> JobStatus:
        """Return the status of a run, from a new look if the last one is not fresh. An error of
        the look reaches the one who looked."""
        seen = self._of(run)
        with seen.looking:
            now = self._clock.elapsed()
            if seen.status is None or now - seen.began >= FRESH_SECONDS:
                seen.status = look()
                seen.began = now
            return seen.status

    def _of(self, run: str) -> _Seen:
        with self._lock:
            seen = self._seen.setdefault(run, _Seen())
            self._seen.move_to_end(run)
            if len(self._seen) > _MOST_KEPT:
                self._seen.popitem(last=False)
            return seen
