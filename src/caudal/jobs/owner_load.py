"""What runs and waits of each owner, about: what a gateway's reconciler saw, and what came since.

What comes while the reconciler looks may be missed until it looks again, and so may what other
gateways take: both bounds that go by it (`jobs/lane_shares.py`, `Bounds.jobs_ahead`) are soft.
"""

from collections import Counter
from collections.abc import Mapping
from threading import Lock

from caudal.formats.keys import Lane

Waiting = Counter[tuple[str, Lane]]


class Loads:
    """For any number of threads. A gateway that has just started knows of no jobs."""

    def __init__(self) -> None:
        self._seen: Mapping[str, int] = {}
        self._since: Counter[str] = Counter()
        self._waiting: Waiting = Counter()
        self._sent: Waiting = Counter()
        self._lock = Lock()

    def seen(self, running: Mapping[str, int], waiting: Waiting) -> None:
        """All running jobs were looked at, by owner; and their waiting batches, if there are many
        in any lane."""
        with self._lock:
            self._seen, self._waiting = dict(running), waiting
            self._since.clear()
            self._sent.clear()

    def created(self, owner: str) -> None:
        with self._lock:
            self._since[owner] += 1

    def sent(self, owner: str, lane: Lane) -> None:
        """A batch was let into a lane."""
        with self._lock:
            self._sent[owner, lane] += 1

    def of(self, owner: str) -> int:
        """How many jobs of an owner run."""
        with self._lock:
            return self._seen.get(owner, 0) + self._since[owner]

    def waiting(self, owner: str, lane: Lane) -> tuple[int, int]:
        """How many batches of an owner wait in a lane, and how many owners have some there, itself
        included."""
        with self._lock:
            both = self._waiting + self._sent
        others = {one for one, where in both if where is lane} - {owner}
        return both[owner, lane], len(others) + 1
