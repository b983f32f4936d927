"""Approximate counts of each owner's running jobs and waiting batches.

They are what this gateway's reconciler saw, plus what this gateway accepted since. Anything that
arrives during the reconciler's round, or at another gateway, may be missed until the next round.
So both bounds that use the counts (`jobs/lane_shares.py`, `Bounds.jobs_ahead`) are soft.
"""

from collections import Counter
from collections.abc import Mapping
from threading import Lock

from caudal.formats.keys import Lane

Waiting = Counter[tuple[str, Lane]]


class Loads:
    """The counts. Thread-safe. A gateway that has just started knows no jobs."""

    def __init__(self) -> None:
        self._seen: Mapping[str, int] = {}
        self._since: Counter[str] = Counter()
        self._waiting: Waiting = Counter()
        self._sent: Waiting = Counter()
        self._lock = Lock()

    def seen(self, running: Mapping[str, int], waiting: Waiting) -> None:
        """Replace the counts after a round over all running jobs. `waiting` is empty unless many
        batches wait in some lane."""
        with self._lock:
            self._seen, self._waiting = dict(running), waiting
            self._since.clear()
            self._sent.clear()

    def created(self, owner: str) -> None:
        with self._lock:
            self._since[owner] += 1

    def sent(self, owner: str, lane: Lane) -> None:
        """Count a batch that was accepted into a lane."""
        with self._lock:
            self._sent[owner, lane] += 1

    def of(self, owner: str) -> int:
        """Return how many jobs of an owner run."""
        with self._lock:
            return self._seen.get(owner, 0) + self._since[owner]

    def waiting(self, owner: str, lane: Lane) -> tuple[int, int]:
        """Return how many batches of an owner wait in a lane, and how many owners have batches
        there, this one included."""
        with self._lock:
            both = self._waiting + self._sent
        others = {one for one, where in both if where is lane} - {owner}
        return both[owner, lane], len(others) + 1
