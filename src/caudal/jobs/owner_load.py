"""How many jobs of each owner run, about: what a gateway's reconciler saw, and what came since."""

from collections import Counter
from collections.abc import Mapping
from threading import Lock


class Loads:
    """For any number of threads. A gateway that has just started knows of no jobs."""

    def __init__(self) -> None:
        self._seen: Mapping[str, int] = {}
        self._since: Counter[str] = Counter()
        self._lock = Lock()

    def seen(self, running: Mapping[str, int]) -> None:
        """All running jobs were looked at, by owner."""
        with self._lock:
            self._seen = dict(running)
            self._since.clear()

    def created(self, owner: str) -> None:
        with self._lock:
            self._since[owner] += 1

    def of(self, owner: str) -> int:
        with self._lock:
            return self._seen.get(owner, 0) + self._since[owner]
