"""What each owner has in the store: jobs and bytes, counted again and again.

Rules
1. The store is the truth, and every gateway counts it by itself. What this gateway adds is added at
   once, from the moment in which it is let in; what others add is seen by the next count.
2. What was added before a count began is in that count. What was added while it ran may be in it or
   not, and is kept beside it until the next one ends: an owner seems to have too much for a moment
   rather than too little.
3. Where there are G gateways, each lets in at most a part of 1 / 2G of what its last count left,
   from the beginning of that count on; but always one job or batch. All counts pause about equally
   long, so that no gateway counts three times while another counts once: in that time each lets in
   two parts at most, and all of them together what was left. So an owner passes a quota by one job
   or batch for each other gateway at most. Even if gateways count as unevenly as can be, it is less
   than half of what was left.
4. A gateway that has never counted lets nothing in, unless it is the only one.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
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


class QuotaRoom(Enum):
    """Whether an owner may have more."""

    FREE = "there is room"
    LATER = "this gateway must count again first"
    FULL = "the quota is full"


class Hold:
    """What is being added; `lasts` says what became of it."""

    def __init__(self) -> None:
        self.added: Mapping[Quota, int] = {}

    def lasts(self, amounts: Mapping[Quota, int]) -> None:
        """So much is in the store now."""
        self.added = amounts


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
        self._has_counted = False
        self._before: Counts = Counter()  # added before the count that runs now began
        self._since: Counts = Counter()
        self._coming: Counts = Counter()  # let in, and not in the store yet

    def used(self, owner: str, quota: Quota) -> int:
        """How many jobs of an owner run or are kept, or how many bytes it has stored."""
        with self._lock:
            return self._counted[owner, quota] + self._added(owner, quota)

    def room(
        self, owner: str, quota: Quota, amount: int, most: int | None, gateways: int
    ) -> QuotaRoom:
        """May the owner have so much more, here and now? (Rules 3 and 4.)"""
        if most is None:
            return QuotaRoom.FREE
        with self._lock:
            added = self._added(owner, quota)
            left = most - self._counted[owner, quota]
            if added + amount > left:
                return QuotaRoom.FULL
            if gateways < 2:
                return QuotaRoom.FREE
            is_part = not added or (added + amount) * 2 * gateways <= left
            return QuotaRoom.FREE if is_part and self._has_counted else QuotaRoom.LATER

    @contextmanager
    def holding(self, owner: str, amounts: Mapping[Quota, int]) -> Iterator[Hold]:
        """Count this as the owner's while it is on its way, and what `lasts` of it from then on."""
        held, hold = _of(owner, amounts), Hold()
        with self._lock:
            self._coming.update(held)
        try:
            yield hold
        finally:
            with self._lock:
                self._coming -= held
                self._since.update(_of(owner, hold.added))

    def round(self) -> None:
        """Count everything, if anybody goes by it: a listing of all objects has its price."""
        if not self.is_wanted():
            return
        with self._lock:
            self._before += self._since
            self._since = Counter()
        counted = self._count()
        with self._lock:
            self._counted, self._before, self._has_counted = counted, Counter(), True

    def _added(self, owner: str, quota: Quota) -> int:
        """By this gateway, since its last count began."""
        return sum(one[owner, quota] for one in (self._before, self._since, self._coming))

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


def _of(owner: str, amounts: Mapping[Quota, int]) -> Counts:
    return Counter({(owner, quota): amount for quota, amount in amounts.items()})
