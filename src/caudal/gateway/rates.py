"""Rate limit per owner, or per address of strangers: a token bucket."""

import ipaddress
import math
from dataclasses import dataclass

_OWNERS = 10_000  # remembered; a forgotten owner starts with a full bucket
_HOST_BITS = 64  # of an IPv6 address: one machine may use all addresses of its network


@dataclass(frozen=True)
class Bucket:
    """The permits left at a moment."""

    permits: float
    at: float

    def filled(self, now: float, per_second: float, most: float) -> "Bucket":
        gained = max(0.0, now - self.at) * per_second
        return Bucket(min(most, self.permits + gained), now)


class Rates:
    """The buckets of all owners. Use it from the event loop's thread only."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._buckets: dict[str, Bucket] = {}

    def take(self, owner: str, now: float) -> int:
        """Take a permit. Return 0, or the seconds until there will be one.

        >>> rates = Rates(per_second=0.5, burst=1)
        >>> rates.take("me", now=0.0), rates.take("me", now=0.0), rates.take("me", now=2.0)
        (0, 2, 0)
        """
        before = self._buckets.get(owner) or Bucket(self._burst, now)
        bucket = before.filled(now, self._per_second, self._burst)
        allowed = bucket.permits >= 1
        if len(self._buckets) >= _OWNERS:
            self._buckets.clear()
        self._buckets[owner] = Bucket(bucket.permits - 1, now) if allowed else bucket
        return 0 if allowed else math.ceil((1 - bucket.permits) / self._per_second)


def neighbours(address: str) -> str:
    """Return by what name a stranger's requests are counted: its address, in IPv6 its network.

    >>> [neighbours(one) for one in ("10.0.0.1", "::ffff:10.0.0.1", "fd00::1:2", "a pipe")]
    ['10.0.0.1', '10.0.0.1', 'fd00::/64', 'a pipe']
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    network = int(found) >> _HOST_BITS << _HOST_BITS
    return f"{ipaddress.IPv6Address(network)}/{128 - _HOST_BITS}"
