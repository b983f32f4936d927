"""What each owner has in the store: jobs and bytes, counted again and again.

Rules
1. The store is the truth, and every gateway counts it by itself. What this gateway adds is added at
   once; what others add is seen by the next count. So several gateways together may let an owner a
   little over a quota, by what it sends within one pause.
2. What was added before a count began is in that count. What was added while it ran may be in it or
   not, and is kept beside it until the next one ends: an owner seems to have too much for a moment
   rather than too little.
"""

from collections import Counter
from collections.abc import Callable
from threading import Lock

import msgspec

from caudal.errors import FormatError, NotFoundError
from caudal.formats import document
from caudal.formats import job as job_format
from caudal.formats.keys import Keys, job_key
from caudal.formats.quotas import Quota
from caudal.jobs import objects
from caudal.store.port import Store, entries, folder_names

_BLOCK = 4096

Counts = Counter[tuple[str, Quota]]


def stored_size(size: int) -> int:
    """What an object takes of a disk: many small ones are not free.

    >>> [stored_size(one) for one in (0, 1, 4096, 4097)]
    [4096, 4096, 4096, 8192]
    """
    return max(1, -(-size // _BLOCK)) * _BLOCK


class _Owned(msgspec.Struct, frozen=True):
    """The part of job.json that matters here."""

    id: str
    run: str
    owner: str


class OwnerUsage:
    """The latest count. Several threads may ask; one counts, and only if anything is bounded."""

    def __init__(self, store: Store, is_wanted: Callable[[], bool] = lambda: True) -> None:
        self._store = store
        self.is_wanted = is_wanted
        self._lock = Lock()
        self._counted: Counts = Counter()
        self._before: Counts = Counter()  # added before the count that runs now began
        self._since: Counts = Counter()

    def used(self, owner: str, quota: Quota) -> int:
        """How many jobs of an owner run or are kept, or how many bytes it has stored."""
        with self._lock:
            held = (self._counted, self._before, self._since)
            return sum(one[owner, quota] for one in held)

    def note(self, owner: str, quota: Quota, amount: int) -> None:
        """Something was added here."""
        with self._lock:
            self._since[owner, quota] += amount

    def round(self) -> None:
        """Count everything, if anybody goes by it: a listing of all objects has its price."""
        if not self.is_wanted():
            return
        with self._lock:
            self._before += self._since
            self._since = Counter()
        counted = self._count()
        with self._lock:
            self._counted, self._before = counted, Counter()

    def _count(self) -> Counts:
        found: Counts = Counter()
        for job_id in folder_names(self._store, "jobs/"):
            owned = self._owned(job_id)
            if owned is None:
                continue
            found[owned.owner, Quota.KEPT] += 1
            if not objects.exists(self._store, Keys(owned.id, owned.run).outcome):
                found[owned.owner, Quota.JOBS] += 1
            for entry in entries(self._store, f"jobs/{job_id}/"):
                found[owned.owner, Quota.STORED] += stored_size(entry.size)
        return found

    def _owned(self, job_id: str) -> _Owned | None:
        """None of what goes meanwhile, or has a form that this Caudal does not know."""
        key = job_key(job_id)
        try:
            data = objects.job_bytes(self._store, job_id)
            return document.decode(data, job_format.KIND, job_format.FORMAT, _Owned, key)
        except (NotFoundError, FormatError):
            return None
