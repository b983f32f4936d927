"""What may go wrong, how often, and the one place where effects meet their fate."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from tests.simulation.scheduler import Coverage, Crash, Scheduler

Value = TypeVar("Value")
_CRASHING = ("worker", "gateway", "client")


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
    lost_answer: float = 0.0
    doubled_request: float = 0.0
    slow: float = 0.0

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
            lost_answer=rate(0.02, 0.1),
            doubled_request=rate(0.02, 0.1),
            slow=rate(0.01, 0.05),
        )


@dataclass
class Faults:
    """Decides, at every effect, what becomes of it."""

    scheduler: Scheduler
    rates: Rates
    coverage: Coverage = field(default_factory=Coverage)
    fragile: set[str] = field(default_factory=set)  # clients that may be killed

    def happens(self, name: str) -> bool:
        rate: float = getattr(self.rates, name)
        if rate and self.scheduler.chance.random() < rate:
            self.coverage.faults[name] += 1
            return True
        return False

    def calm(self) -> None:
        self.rates = Rates()

    def effect(
        self,
        operation: str,
        about: str,
        act: Callable[[], Value],
        error: Callable[[str], Exception],
        rate: str,
    ) -> Value:
        """Let others act, then do it, unless fate decides otherwise."""
        scheduler = self.scheduler
        actor = scheduler.current
        kind = f"{actor.label} {operation}"
        self.coverage.effects[kind] += 1
        slow = scheduler.chance.uniform(0.5, 15) if self.happens("slow") else 0.0
        scheduler.give_way(scheduler.now + slow if slow else 0.0)
        self._maybe_freeze()
        if self._crashes(kind):
            self._crash(kind, "before", about)
        failure = self.happens(rate)
        if failure and scheduler.chance.random() < 0.5:
            scheduler.note(actor, f"{operation} FAILED", about)
            raise error(f"{operation} {about}: simulated")
        value = act()
        scheduler.note(actor, operation, about)
        if self._crashes(kind):
            self._crash(kind, "after", about)
        if failure:
            scheduler.note(actor, f"{operation} DONE BUT FAILED", about)
            raise error(f"{operation} {about}: simulated, though done")
        return value

    def _crashes(self, kind: str) -> bool:
        """Kinds of effect that are rare in this run are as likely to be hit as common ones."""
        process = self.scheduler.current.process
        rate = self.rates.crash
        if process.kind == "client":
            rate = 0.04 if process.name in self.fragile else 0.0
        if not rate or process.kind not in _CRASHING:
            return False
        rare = 12 / (1 + self.coverage.effects[kind])
        if self.scheduler.chance.random() >= rate * (0.3 + rare):
            return False
        self.coverage.faults["crash"] += 1
        return True

    def _crash(self, kind: str, side: str, about: str) -> None:
        actor = self.scheduler.current
        self.coverage.crashes[f"{kind} {side}"] += 1
        self.scheduler.note(actor, f"KILLED {side}", f"{kind} {about}")
        self.scheduler.kill(actor.process)
        raise Crash

    def _maybe_freeze(self) -> None:
        actor = self.scheduler.current
        if actor.process.kind != "client" and self.happens("freeze"):
            seconds = self.scheduler.chance.choice((3.0, 30.0, 150.0, 400.0))
            self.scheduler.note(actor, "FROZEN", f"{seconds:g} s")
            self.scheduler.freeze(actor.process, seconds)
            self.scheduler.give_way()
