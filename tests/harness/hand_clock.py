"""A clock for tests of patience."""

from dataclasses import dataclass, field


@dataclass
class HandClock:
    """Time passes only by sleeping, or when the test says so."""

    time: float = 0.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    def elapsed(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


@dataclass
class WrongClock(HandClock):
    """A clock whose date is wrong; it measures durations well."""

    ahead: float = 0.0

    def now(self) -> float:
        return self.time + self.ahead
