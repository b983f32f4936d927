"""Actors that take turns at every effect, chosen by a seeded generator.

Rules
1. An actor is a greenlet that runs production code. It gives way inside the simulated adapters,
   once per effect, so that any other actor may act between any two effects.
2. Actors belong to a process. A crash is a `Crash` raised inside an effect, before or after it took
   place; all actors of the process are dead from then on and every further effect of theirs raises
   again. A frozen process is not scheduled until it thaws: a zombie.
3. Time moves a little with every turn, and jumps when everybody sleeps.
4. Whoever gives way chooses who acts next and switches to it: the hub is asked only now and then,
   whether the run is over.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet

LOOK_EVERY = 16  # turns between two looks at whether the run is over


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
    alarm: int | None = None  # which entry among the sleepers is its own; None: it is awake


class Scheduler:
    """Runs actors until nobody can do anything, or until told to stop."""

    current: Actor

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.now = 1_000_000.0
        self.steps = 0
        self.trace: list[tuple[float, Actor, str, object]] = []
        self.errors: list[BaseException] = []
        self.thaws = 0.0  # when the last frozen process goes on
        self._actors: list[Actor] = []  # all that ever were
        self._awake: list[Actor] = []
        self._sleepers: list[tuple[float, int, Actor]] = []
        self._alarms = count()
        self._hub: Any = getcurrent()

    def spawn(self, process: Process, label: str, work: Callable[[], None]) -> Actor:
        actor = Actor(process, label)

        def body() -> None:
            try:
                work()
            except Crash:
                pass
            except Exception as error:  # a bug: told at the end
                self.errors.append(error)
                self.note(actor, "BUG", repr(error))
            if actor in self._awake:
                self._awake.remove(actor)

        actor.greenlet = greenlet(body, self._hub)
        self._actors.append(actor)
        if process.frozen_until > self.now:
            self._rest(actor, process.frozen_until)
        else:
            self._awake.append(actor)
        return actor

    def give_way(self, wakes: float = 0.0) -> None:
        """Let others act; come back when it is time."""
        actor = self.current
        if actor.process.alive:
            if wakes > self.now:
                self._awake.remove(actor)
                self._rest(actor, wakes)
            self.steps += 1
            following = self._next() if self.steps % LOOK_EVERY else None
            if following is None:
                self._hub.switch()
            elif following is not actor:
                following.greenlet.switch()
        if not actor.process.alive:
            raise Crash

    def wake(self, actor: Actor) -> None:
        """What it waited for has come before its time was over."""
        if actor.alarm is not None and actor.process.alive:
            self._rouse(actor)

    def run(self, until: Callable[[], bool], most_steps: int, most_seconds: float) -> None:
        """Turns, until the condition holds; StuckError if that takes too many, or too long."""
        latest = self.now + most_seconds
        while not until():
            if self.steps > most_steps:
                raise StuckError(f"no end after {most_steps} steps")
            if self.now > latest:
                raise StuckError(f"no end after {most_seconds:g} simulated seconds")
            if self.errors:
                raise self.errors[0]
            self.steps += 1
            following = self._next()
            if following is None:
                raise StuckError("nobody is left to act")
            following.greenlet.switch()

    def _next(self) -> Actor | None:
        """Whoever acts next; None if nobody is left."""
        self.now += 0.01
        self._ring()
        while not self._awake:
            if not self._sleepers:
                return None
            self.now = max(self.now, self._sleepers[0][0])
            self._ring()
        self.current = chosen = self._awake[int(self.chance.random() * len(self._awake))]
        return chosen

    def _ring(self) -> None:
        """Rouse everybody whose time has come."""
        sleepers, now = self._sleepers, self.now
        while sleepers and sleepers[0][0] <= now:
            _, alarm, actor = heappop(sleepers)
            if actor.alarm == alarm:
                self._rouse(actor)

    def _rest(self, actor: Actor, wakes: float) -> None:
        actor.alarm = next(self._alarms)
        heappush(self._sleepers, (wakes, actor.alarm, actor))

    def _rouse(self, actor: Actor) -> None:
        """It is awake from now on, unless its process is frozen."""
        if actor.process.frozen_until > self.now:
            self._rest(actor, actor.process.frozen_until)
        else:
            actor.alarm = None
            self._awake.append(actor)

    def kill(self, process: Process) -> None:
        """None of its actors acts again."""
        if process.alive:
            process.alive = False
            self._awake = [actor for actor in self._awake if actor.process is not process]
            for _, _, actor in self._sleepers:
                if actor.process is process:
                    actor.alarm = None
            for hook in process.at_death:
                hook()

    def freeze(self, process: Process, seconds: float) -> None:
        process.frozen_until = self.now + seconds
        self.thaws = max(self.thaws, process.frozen_until)
        for actor in [one for one in self._awake if one.process is process]:
            self._awake.remove(actor)
            self._rest(actor, process.frozen_until)
        for hook in process.at_freeze:
            hook()

    def close(self) -> None:
        """End every actor where it stands, so that what it holds is freed at once."""
        for actor in self._actors:
            actor.process.alive = False
            actor.greenlet.throw()
        self._actors.clear()
        self._awake.clear()
        self._sleepers.clear()

    def note(self, actor: Actor, what: str, about: object = "") -> None:
        """One line of the trace; nothing is put into words before somebody reads it."""
        self.trace.append((self.now, actor, what, about))

    def readable(self, last: int = 400) -> str:
        return "\n".join(
            f"{at - 1e6:9.2f}  {actor.process.name + '/' + actor.label:22} {what:26} {about}"
            for at, actor, what, about in self.trace[-last:]
        )
