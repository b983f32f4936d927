"""Actors that take turns at every effect, chosen by a seeded generator.

Rules
1. An actor is a greenlet that runs production code. It gives way inside the simulated adapters,
   once per effect, so that any other actor may act between any two effects.
2. Actors belong to a process. A crash is a `Crash` raised inside an effect, before or after it took
   place; all actors of the process are dead from then on and every further effect of theirs raises
   again. A frozen process is not scheduled until it thaws: a zombie.
3. Time moves a little with every turn, and jumps when everybody sleeps.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet


class Crash(BaseException):
    """The process was killed. Not an Exception: no production code may catch it."""


class StuckError(AssertionError):
    """The world did not come to rest."""


@dataclass(eq=False)
class Process:
    """What lives and dies together. `skew` is how wrong its wall clock is."""

    name: str
    kind: str
    skew: float = 0.0
    alive: bool = True
    frozen_until: float = 0.0
    at_death: list[Callable[[], None]] = field(default_factory=list)  # crash
    at_freeze: list[Callable[[], None]] = field(default_factory=list)  # the broker hangs up


@dataclass(eq=False)
class Actor:
    """One thread of a process."""

    process: Process
    label: str
    greenlet: Any = None
    wakes: float = 0.0
    waits_for: Callable[[], bool] | None = None  # or until `wakes`

    def ready(self, now: float) -> bool:
        if now < self.process.frozen_until:
            return False
        return self.wakes <= now or (self.waits_for is not None and self.waits_for())


class Scheduler:
    """Runs actors until nobody can do anything, or until told to stop."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.now = 1_000_000.0
        self.steps = 0
        self.actors: list[Actor] = []
        self.trace: list[tuple[float, str, str, str]] = []
        self.errors: list[BaseException] = []
        self._hub: Any = None

    def spawn(self, process: Process, label: str, work: Callable[[], None]) -> Actor:
        actor = Actor(process, label, wakes=self.now)

        def body() -> None:
            try:
                work()
            except Crash:
                pass
            except Exception as error:  # a bug: told at the end
                self.errors.append(error)
                self.note(actor, "BUG", repr(error))

        actor.greenlet = greenlet(body)
        actor.greenlet.actor = actor
        self.actors.append(actor)
        return actor

    @property
    def current(self) -> Actor:
        actor: Actor = getcurrent().actor
        return actor

    def give_way(self, wakes: float = 0.0, waits_for: Callable[[], bool] | None = None) -> None:
        """Let others act; come back when it is time."""
        actor = self.current
        if actor.process.alive:
            actor.wakes, actor.waits_for = wakes, waits_for
            self._hub.switch()
        if not actor.process.alive:
            raise Crash

    def run(self, until: Callable[[], bool], most_steps: int, most_seconds: float) -> None:
        """Turns, until the condition holds; StuckError if that takes too many, or too long."""
        latest = self.now + most_seconds
        self._hub = getcurrent()
        while not until():
            self.steps += 1
            if self.steps > most_steps:
                raise StuckError(f"no end after {most_steps} steps")
            if self.now > latest:
                raise StuckError(f"no end after {most_seconds:g} simulated seconds")
            if self.errors:
                raise self.errors[0]
            now = self.now
            ready = [actor for actor in self.actors if actor.ready(now)]
            if not ready:
                if not self.actors:
                    raise StuckError("nobody is left to act")
                self.now = min(max(a.wakes, a.process.frozen_until) for a in self.actors)
                continue
            actor = ready[self.chance.randrange(len(ready))]
            self.now += 0.01
            actor.greenlet.switch()
            if actor.greenlet.dead and actor in self.actors:
                self.actors.remove(actor)

    def kill(self, process: Process) -> None:
        """None of its actors acts again."""
        if process.alive:
            process.alive = False
            self.actors = [actor for actor in self.actors if actor.process is not process]
            for hook in process.at_death:
                hook()

    def freeze(self, process: Process, seconds: float) -> None:
        process.frozen_until = self.now + seconds
        for hook in process.at_freeze:
            hook()

    def note(self, actor: Actor, what: str, about: str = "") -> None:
        self.trace.append((self.now, f"{actor.process.name}/{actor.label}", what, about))

    def readable(self, last: int = 400) -> str:
        lines = [
            f"{t - 1e6:9.2f}  {who:22} {what:26} {about}" for t, who, what, about in self.trace
        ]
        return "\n".join(lines[-last:])


@dataclass
class Coverage:
    """Which effects were seen, and at which of them a process was killed."""

    effects: Counter[str] = field(default_factory=Counter)
    crashes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Coverage") -> None:
        self.effects += other.effects
        self.crashes += other.crashes
        self.faults += other.faults

    def points(self) -> list[str]:
        return [f"{effect} {side}" for effect in self.effects for side in ("before", "after")]

    def unreached(self) -> list[str]:
        return sorted(point for point in self.points() if point not in self.crashes)
