"""What medics did during a fault, from what they said and from their logs: pure functions."""

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_LINE = re.compile(
    r": (restart ordered|order refused|killed a process that hung|started)"
    r" process=(\S+)"
)
_WORDS = {
    "restart ordered": "ordered",
    "order refused": "refused",
    "killed a process that hung": "killed",
    "started": "started",
}


@dataclass(frozen=True)
class RoleChange:
    """A medic was seen to lead, or not to lead any longer."""

    at: float
    medic: str
    leads: bool


@dataclass(frozen=True)
class DoubleLead:
    """How often, how long, and how many medics at once believed that they lead."""

    times: int
    seconds: float
    most: int


def double_lead(changes: Iterable[RoleChange], begin: float, end: float) -> DoubleLead:
    """Return what part of a span had two leaders or more."""
    leading: set[str] = set()
    times, seconds, most, since = 0, 0.0, 0, begin
    for change in [*sorted(changes, key=lambda one: one.at), RoleChange(end, "", False)]:
        now, before = min(max(change.at, begin), end), len(leading)
        if now > since:
            most = max(most, before)
            seconds += now - since if before > 1 else 0.0
        since = now
        (leading.add if change.leads else leading.discard)(change.medic)
        times += begin <= change.at < end and before < 2 <= len(leading)
    return DoubleLead(times, seconds, most)


@dataclass(frozen=True)
class Deed:
    """A line of a medic's log about a restart."""

    what: str  # ordered, refused, killed, started
    process: str


def deeds(lines: Sequence[str]) -> list[Deed]:
    """Return what these lines of medics say about restarts."""
    found = (_LINE.search(line) for line in lines)
    return [Deed(_WORDS[one[1]], one[2]) for one in found if one]


def longest_pause(moments: Sequence[float], begin: float, end: float) -> float:
    """Return the longest time of a span without any of these moments."""
    marks = [begin, *sorted(one for one in moments if begin < one < end), end]
    return max(after - before for before, after in itertools.pairwise(marks))
