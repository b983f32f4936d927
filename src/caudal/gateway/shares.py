"""Shares of owners: how much of this gateway each owner holds, and how much it may hold.

Rules
1. With tokens, no owner may hold more than a part of any resource. So one owner, however many
   sockets it opens, leaves the rest to the others. Without tokens there is one owner, who may use
   everything.
2. A request over a quota is refused with 429, and the answer names the quota. The refusal of one
   owner does not depend on what others hold.

Everything here is for one event loop.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from caudal.formats.quotas import Allowances, Quota, told
from caudal.gateway.figures import GatewayMetrics
from caudal.gateway.limits import GatewayLimits
from caudal.gateway.refusals import Refusal, later

_PART = 4  # one owner holds at most 1 / _PART of a gateway's resources
_SECONDS = {
    Quota.JOBS: 10,
    Quota.KEPT: 30,
    Quota.STORED: 30,
}  # retry delays; 1 for all others


def usual_quotas(limits: GatewayLimits, *, shared: bool) -> dict[Quota, int | None]:
    """Return the default quotas, which apply where cluster.toml sets none."""
    part = _PART if shared else 1
    return {
        Quota.REQUESTS: -(-limits.requests // part),
        Quota.UPLOADS: limits.bodies_bytes // part,
        Quota.STREAMS: -(-limits.streams // part),
        Quota.JOBS: limits.jobs if shared else None,
        Quota.KEPT: limits.kept_jobs if shared else None,
        Quota.STORED: limits.stored_bytes if shared else None,
    }


class Shares:
    """The amounts that each owner holds now, of the resources that a gateway counts by itself."""

    def __init__(self, allowances: Callable[[], Allowances], figures: GatewayMetrics) -> None:
        self._allowances = allowances
        self._figures = figures
        self._held: Counter[tuple[str, Quota]] = Counter()

    def limit(self, owner: str, quota: Quota) -> int | None:
        return self._allowances().of(owner, quota)

    def held(self, owner: str, quota: Quota) -> int:
        return self._held[owner, quota]

    def has_room(self, owner: str, quota: Quota, amount: int, used: int | None = None) -> bool:
        """Return whether the quota allows this. Pass `used` if the usage is counted elsewhere."""
        most = self.limit(owner, quota)
        now = self.held(owner, quota) if used is None else used
        return most is None or now + amount <= most

    @contextmanager
    def holding(self, owner: str, quota: Quota, amount: int = 1) -> Iterator[None]:
        """Hold this amount during the block; raise Refusal if it is over the quota."""
        self.take(owner, quota, amount)
        try:
            yield
        finally:
            self.give_back(owner, quota, amount)

    def take(self, owner: str, quota: Quota, amount: int) -> None:
        if not self.has_room(owner, quota, amount):
            raise self.refusal(owner, quota)
        self._held[owner, quota] += amount

    def give_back(self, owner: str, quota: Quota, amount: int) -> None:
        self._held[owner, quota] -= amount
        if self._held[owner, quota] <= 0:
            del self._held[owner, quota]

    def refusal(self, owner: str, quota: Quota) -> Refusal:
        """Return the refusal for an owner over its quota, and count it."""
        self._figures.note_over_quota(quota)
        most = told(quota, self.limit(owner, quota))
        about = {
            Quota.REQUESTS: f"{most} requests of one owner are answered at once",
            Quota.UPLOADS: f"{most} of bodies of one owner are taken at once",
            Quota.STREAMS: f"{most} streams of one owner are open at once",
            Quota.JOBS: f"{most} jobs of one owner run at once: wait until one ends, or cancel one",
            Quota.KEPT: f"{most} jobs of one owner are kept: ask for results to be kept shorter",
            Quota.STORED: f"{most} are stored for one owner: wait until jobs end",
        }[quota]
        refusal = later("over_quota", f"quota {quota}: at most {about}", _SECONDS.get(quota, 1))
        refusal.quota = quota.value
        return refusal
