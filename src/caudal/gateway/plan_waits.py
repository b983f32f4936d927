"""Makes an owner wait whose requests could not be planned within the limits.

A plan that exceeds its limits costs as much CPU time as dozens of others, and a new child process.

Rules
1. After such a plan its owner waits before this gateway plans for it again: FIRST_SECONDS after
   the first one, four times as long after each further one, up to MOST_SECONDS.
2. All of them are forgotten after FORGET_SECONDS without one.
3. Without tokens there is only one owner, who does not wait.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from caudal.gateway.refusals import Refusal, later

FIRST_SECONDS, MOST_SECONDS = 20.0, 300.0
FORGET_SECONDS = 600.0


@dataclass(frozen=True)
class _Stops:
    """The stopped plans of one owner: how many, and when the last one was."""

    count: int
    last: float

    @property
    def until(self) -> float:
        return self.last + min(FIRST_SECONDS * 4.0 ** min(self.count - 1, 9), MOST_SECONDS)


class PlanWaits:
    """The waits of all owners. For one event loop."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._stops: dict[str, _Stops] = {}

    def refusal(self, owner: str) -> Refusal | None:
        """Return why the owner must wait; None if it need not."""
        stops, now = self._known(owner), self._clock()
        if stops is None or now >= stops.until:
            return None
        seconds = ceil(stops.until - now)
        told = f"{stops.count} of your requests took too much to plan: try again in {seconds} s"
        return later("busy", told, seconds)

    def stopped(self, owner: str) -> None:
        """Note that a plan of this owner exceeded its limits."""
        stops = self._known(owner)
        self._stops[owner] = _Stops(stops.count + 1 if stops else 1, self._clock())

    def _known(self, owner: str) -> _Stops | None:
        stops = self._stops.get(owner)
        if stops is not None and self._clock() - stops.last > FORGET_SECONDS:
            del self._stops[owner]
            return None
        return stops
