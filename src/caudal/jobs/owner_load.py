"""Approximate counts of each owner's running jobs and waiting batches.

They are what this gateway's reconciler saw, plus what this gateway accepted since. Anything that
arrives during the reconciler's round, or at another gateway, may be missed until the next round.
So both bounds that use the counts (`jobs/lane_shares.py`, `Bounds.jobs_ahead`) are soft.

Jobs are known by the keys of their outcomes, because they may end between two rounds: an owner
with many short jobs, one after the other, has few at a time. Whoever counts them looks.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from threading import Lock

from caudal.formats.keys import Keys, Lane

Waiting = Counter[tuple[str, Lane]]


class Loads:
    """The counts. Thread-safe. A gateway that has just started knows no jobs."""

    def __init__(self) -> None:
        self._jobs: dict[str, list[Keys]] = {}  # of each owner, the oldest first
        self._since: set[Keys] = set()  # created here since the last round began
        self._waiting: Waiting = Counter()
        self._sent: Waiting = Counter()
        self._lock = Lock()

    def begin(self) -> None:
        """A round begins: what is created from now on may be missed by it."""
        with self._lock:
            self._since.clear()

    def seen(self, running: Mapping[str, Iterable[Keys]], waiting: Waiting) -> None:
        """Replace the counts after a round over all running jobs. `waiting` is empty unless many
        batches wait in some lane."""
        with self._lock:
            fresh = {
                owner: [one for one in jobs if one in self._since]
                for owner, jobs in self._jobs.items()
            }
            owners = running.keys() | fresh.keys()
            both = {one: [*running.get(one, ()), *fresh.get(one, ())] for one in owners}
            self._jobs = {owner: list(dict.fromkeys(jobs)) for owner, jobs in both.items() if jobs}
            self._waiting = waiting
            self._sent.clear()

    def created(self, owner: str, job: Keys) -> None:
        with self._lock:
            self._jobs.setdefault(owner, []).append(job)
            self._since.add(job)

    def ended(self, owner: str, job: Keys) -> None:
        """Forget a job that somebody found ended."""
        with self._lock:
            self._since.discard(job)
            self._jobs[owner] = [one for one in self._jobs.get(owner, ()) if one != job]

    def jobs(self, owner: str) -> list[Keys]:
        """Return the jobs of an owner that may still run."""
        with self._lock:
            return list(self._jobs.get(owner, ()))

    def sent(self, owner: str, lane: Lane) -> None:
        """Count a batch that was accepted into a lane."""
        with self._lock:
            self._sent[owner, lane] += 1

    def waiting(self, owner: str, lane: Lane) -> tuple[int, int]:
        """Return how many batches of an owner wait in a lane, and how many owners have batches
        there, this one included."""
        with self._lock:
            both = self._waiting + self._sent
        others = {one for one, where in both if where is lane} - {owner}
        return both[owner, lane], len(others) + 1
