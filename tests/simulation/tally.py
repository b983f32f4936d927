"""What many runs came to, and the runs that reach what they left out."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from tests.simulation.coverage import Coverage, Point
from tests.simulation.faults import Aim
from tests.simulation.world import Report, simulate


@dataclass(frozen=True)
class Way:
    """A run: a seed, where its processes are killed besides, and how long it takes."""

    seed: int
    aims: tuple[Aim, ...]
    steps: int


@dataclass
class Tally:
    """Sums over runs; it travels as JSON between processes."""

    seeds: int = 0
    steps: int = 0
    longest: int = 0
    answers: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    effects: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    killed: dict[str, dict[str, int]] = field(default_factory=dict)  # by side and effect
    seen: dict[str, Way] = field(default_factory=dict)  # a short way to each effect

    def count(self, report: Report) -> None:
        found = report.coverage
        self.add(
            Tally(
                1,
                report.steps,
                report.steps,
                report.answers,
                dict(Counter(report.outcomes)),
                dict(found.effects),
                dict(found.faults),
                {
                    side: {one.effect: n for one, n in found.crashes.items() if one.side == side}
                    for side in ("before", "after")
                },
                dict.fromkeys(found.effects, Way(report.seed, report.aims, report.steps)),
            )
        )

    def add(self, other: "Tally") -> None:
        self.seeds += other.seeds
        self.steps += other.steps
        self.longest = max(self.longest, other.longest)
        self.answers += other.answers
        for mine, more in (
            (self.outcomes, other.outcomes),
            (self.effects, other.effects),
            (self.faults, other.faults),
            *((self.killed.setdefault(side, {}), more) for side, more in other.killed.items()),
        ):
            for name, number in more.items():
                mine[name] = mine.get(name, 0) + number
        for name, way in other.seen.items():
            known = self.seen.get(name)
            if known is None or (len(way.aims), way.steps) < (len(known.aims), known.steps):
                self.seen[name] = way

    def coverage(self) -> Coverage:
        found = Coverage(Counter(self.effects), faults=Counter(self.faults))
        for side, effects in self.killed.items():
            for effect, number in effects.items():
                found.crashes[Point(effect, "before" if side == "before" else "after")] = number
        return found

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "Tally":
        return msgspec.json.decode(data, type=cls)


class Simulate(Protocol):
    """One run of a seed, with processes that are killed besides."""

    def __call__(self, seed: int, *, aims: tuple[Aim, ...] = ()) -> Report: ...


def run_all(seeds: Iterable[int], run: Simulate = simulate) -> Tally:
    """The runs of these seeds; raises ViolationError at the first that fails."""
    tally = Tally()
    for seed in seeds:
        tally.count(run(seed))
    return tally


def reach_the_rest(tally: Tally, run: Simulate = simulate) -> Iterator[Point]:
    """Kill a process at every point that no run came to be killed at.

    A run that is aimed at an effect goes the way of the same seed up to there, so it must come by.
    """
    while left := tally.coverage().unreached():
        for point in left:
            way = tally.seen[point.effect]
            tally.count(run(way.seed, aims=(*way.aims, Aim(point))))
            yield point
        if left == tally.coverage().unreached():
            return
