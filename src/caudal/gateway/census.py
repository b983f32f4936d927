"""Periodic counts of what each owner has in the store: jobs and bytes.

Rules
1. The store is the source of truth, and every gateway counts it by itself. A gateway adds its own
   additions at once, from their admission on. It sees those of others in its next count.
2. Additions made before a count began are part of that count. Additions made during a count may or
   may not be part of it; they are kept beside it until the next count ends. So an owner may
   briefly seem to use too much, but never too little.
3. With G gateways, each one admits at most 1 / 2G of what its last count left, from the beginning
   of that count on; but always one job or batch. All gateways pause about equally long between
   counts, so no gateway counts three times while another counts once. In that time each admits at
   most two such parts, and all together what was left. So an owner exceeds a quota by at most one
   job or batch for each other gateway. Even with the most uneven counts the excess is less than
   half of what was left.
4. A gateway that has not counted yet admits nothing, unless it is the only gateway.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from threading import Lock

import msgspec

from caudal.datasets.cluster_place import ROOT, SHARED
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
    """Answer to whether an owner may store more."""

    FREE = "there is room"
    LATER = "this gateway must count again first"
    FULL = "the quota is full"


class Hold:
    """An addition in progress. Call `lasts` when it is stored."""

    def __init__(self) -> None:
        self.added: Mapping[Quota, int] = {}

    def lasts(self, amounts: Mapping[Quota, int]) -> None:
        """Record that these amounts are now in the store."""
        self.added = amounts


def stored_size(size: int) -> int:
    """Return the disk space of an object, in whole blocks: many small objects are not free.

    >>> [stored_size(one) for one in (0, 1, 4096, 4097)]
    [4096, 4096, 4096, 8192]
    """
    return max(1, -(-size // _BLOCK)) * _BLOCK


class _Owned(msgspec.Struct, frozen=True):
    """The fields of job.json that are needed here."""

    id: str
    run: str
    owner: str


class OwnerUsage:
    """The latest count. Any thread may read it; one thread counts, and only if a quota is set."""

    def __init__(self, store: Store, is_wanted: Callable[[], bool] = lambda: True) -> None:
        self._store = store
        self.is_wanted = is_wanted
        self._lock = Lock()
        self._counted: Counts = Counter()
        self._has_counted = False
        self._before: Counts = Counter()  # added before the current count began
        self._since: Counts = Counter()
        self._coming: Counts = Counter()  # admitted, but not in the store yet

    def used(self, owner: str, quota: Quota) -> int:
        """Return the owner's usage: running jobs, kept jobs or stored bytes."""
        with self._lock:
            return self._counted[owner, quota] + self._added(owner, quota)

    def room(
        self, owner: str, quota: Quota, amount: int, most: int | None, gateways: int
    ) -> QuotaRoom:
        """Return whether the owner may add `amount` here and now (rules 3 and 4)."""
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
        """Count `amounts` for the owner during the block, then count what `lasts` recorded."""
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
        """Count everything, unless no quota needs it: listing all objects is expensive."""
        if not self.is_wanted():
            return
        with self._lock:
            self._before += self._since
            self._since = Counter()
        counted = self._count()
        with self._lock:
            self._counted, self._before, self._has_counted = counted, Counter(), True

    def _added(self, owner: str, quota: Quota) -> int:
        """Return what this gateway added since its last count began."""
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
        for entry in entries(self._store, ROOT):
            owner = entry.key.removeprefix(ROOT).partition("/")[0]
            found[owner, Quota.STORED] += stored_size(entry.size)
        for entry in entries(self._store, SHARED):  # shared/{reader}/{owner}/…
            owner = entry.key.removeprefix(SHARED).partition("/")[2].partition("/")[0]
            found[owner, Quota.STORED] += stored_size(entry.size)
        return found

    def _owned(self, job_id: str) -> _Owned | None:
        """Return None if the job was just deleted, or its format is unknown to this version."""
        key = job_key(job_id)
        try:
            data = objects.job_bytes(self._store, job_id)
            return document.decode(data, job_format.KIND, job_format.FORMAT, _Owned, key)
        except (NotFoundError, FormatError):
            return None


def _of(owner: str, amounts: Mapping[Quota, int]) -> Counts:
    return Counter({(owner, quota): amount for quota, amount in amounts.items()})
