"""What may go wrong, how often, and the one place where effects meet their fate.

One number is drawn per effect: nearly always it says that nothing happens.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NoReturn, TypeVar

from caudal.errors import CaudalError
from tests.simulation.coverage import Coverage, Point, Side, effect_name
from tests.simulation.scheduler import Actor, Crash, Process, Scheduler

Value = TypeVar("Value")
Error = Callable[[str], Exception]
_CRASHING = ("worker", "gateway", "client")
_FRAGILE = 0.04  # how likely a fragile client is to be killed at an effect


@dataclass
class Rates:
    """Chances per effect. All zero once the world is calm."""

    crash: float = 0.0
    freeze: float = 0.0
    store_error: float = 0.0
    broker_error: float = 0.0
    lost_message: float = 0.0
    doubled_message: float = 0.0
    late_message: float = 0.0
    stray_message: float = 0.0
    lost_answer: float = 0.0
    doubled_request: float = 0.0
    slow: float = 0.0
    not_now: float = 0.0  # per computation
    long_task: float = 0.0  # the same

    @classmethod
    def drawn(cls, chance: Random) -> "Rates":
        """Some runs are calm in some respect, some are wild."""

        def rate(*choices: float) -> float:
            return chance.choice((0.0, *choices))

        return cls(
            crash=rate(0.002, 0.006, 0.015),
            freeze=rate(0.0005, 0.002),
            store_error=rate(0.002, 0.01, 0.03),
            broker_error=rate(0.005, 0.03),
            lost_message=rate(0.01, 0.1, 0.5),
            doubled_message=rate(0.05, 0.3),
            late_message=rate(0.05, 0.3),
            stray_message=rate(0.02, 0.1),
            lost_answer=rate(0.02, 0.1),
            doubled_request=rate(0.02, 0.1),
            slow=rate(0.01, 0.05),
            not_now=rate(0.02, 0.2),
            long_task=rate(0.02, 0.1),
        )


@dataclass(frozen=True)
class Aim:
    """Whoever comes by this point first is killed, or frozen before it for so many seconds."""

    point: Point
    frozen_seconds: float | None = None

    def __str__(self) -> str:
        what = "killed" if self.frozen_seconds is None else f"frozen for {self.frozen_seconds:g} s"
        return f"{what} {self.point}"


@dataclass
class Faults:
    """Decides, at every effect, what becomes of it."""

    scheduler: Scheduler
    rates: Rates
    coverage: Coverage = field(default_factory=Coverage)
    fragile: set[str] = field(default_factory=set)  # clients that may be killed
    aims: tuple[Aim, ...] = ()  # each hits once
    outages: dict[str, float] = field(default_factory=dict)  # by rate: until when nothing works
    _freeze_seconds: float | None = None

    def happens(self, name: str) -> bool:
        rate: float = getattr(self.rates, name)
        if rate and self.scheduler.chance.random() < rate:
            self.coverage.faults[name] += 1
            return True
        return False

    def calm(self) -> None:
        self.rates = Rates()

    def begin_outage(self, rate: str, seconds: float) -> None:
        """From now on every effect of that kind fails."""
        self.outages[rate] = self.scheduler.now + seconds
        self.coverage.faults[f"outage of {rate}"] += 1

    def effect(
        self, operation: str, about: object, act: Callable[[], Value], error: Error, rate: str
    ) -> Value:
        """Let others act, then do it, unless fate decides otherwise."""
        scheduler = self.scheduler
        actor = scheduler.current
        name = effect_name(actor.label, operation)
        scheduler.give_way()
        self.coverage.effects[name] += 1
        fate = self._fate(actor.process, name, rate)
        while fate in ("slow", "freeze"):
            self._delay(actor, fate)
            fate = self._fate(actor.process, name, rate)
        if fate == "killed before":
            self._kill(actor, name, "before", about)
        if fate == "failed before":
            scheduler.note(actor, f"{operation} FAILED", about)
            raise error(f"{operation} {about}: simulated")
        try:
            value = act()
            scheduler.note(actor, operation, about)
        except CaudalError as refusal:
            scheduler.note(actor, f"{operation}: {type(refusal).__name__}", about)
            if fate != "killed after":
                raise
        if fate == "killed after":
            self._kill(actor, name, "after", about)
        if fate == "failed after":
            scheduler.note(actor, f"{operation} DONE BUT FAILED", about)
            raise error(f"{operation} {about}: simulated, though done")
        return value

    def _fate(self, process: Process, name: str, rate: str) -> str:
        """What becomes of an effect; mostly nothing."""
        if self.aims and (hit := self._hit(name)):
            return hit
        if self.outages.get(rate, 0.0) > self.scheduler.now:
            return "failed before"
        rates = self.rates
        failing: float = getattr(rates, rate)
        crash = self._crash_rate(process, name)
        freeze = rates.freeze if process.kind != "client" else 0.0
        drawn = self.scheduler.chance.random()
        if drawn >= rates.slow + freeze + 2 * crash + failing:
            return ""
        for fate, chance, counted in (
            ("slow", rates.slow, "slow"),
            ("freeze", freeze, "freeze"),
            ("killed before", crash, "crash"),
            ("killed after", crash, "crash"),
            ("failed before", failing / 2, rate),
            ("failed after", failing / 2, rate),
        ):
            if drawn < chance:
                self.coverage.faults[counted] += 1
                return fate
            drawn -= chance
        return ""

    def _hit(self, name: str) -> str:
        aim = next((one for one in self.aims if one.point.effect == name), None)
        if aim is None:
            return ""
        self.aims = tuple(one for one in self.aims if one is not aim)
        if aim.frozen_seconds is None:
            return f"killed {aim.point.side}"
        self._freeze_seconds = aim.frozen_seconds
        return "freeze"

    def _crash_rate(self, process: Process, name: str) -> float:
        """Effects that are rare in this run are as likely to be hit as common ones."""
        rate = self.rates.crash
        if process.kind == "client":
            rate = _FRAGILE if process.name in self.fragile else 0.0
        if not rate or process.kind not in _CRASHING:
            return 0.0
        return rate * (0.3 + 6 / (1 + self.coverage.effects[name]))

    def _kill(self, actor: Actor, name: str, side: Side, about: object) -> NoReturn:
        self.coverage.crashes[Point(name, side)] += 1
        self.scheduler.note(actor, f"KILLED {side}", f"{name} {about}")
        self.scheduler.kill(actor.process)
        raise Crash

    def _delay(self, actor: Actor, fate: str) -> None:
        chance = self.scheduler.chance
        if fate == "slow":
            self.scheduler.give_way(self.scheduler.now + chance.uniform(0.5, 15))
            return
        seconds = self._freeze_seconds or chance.choice((3.0, 30.0, 150.0, 400.0))
        self._freeze_seconds = None
        self.scheduler.note(actor, "FROZEN", f"{seconds:g} s")
        self.scheduler.freeze(actor.process, seconds)
        self.scheduler.give_way()
