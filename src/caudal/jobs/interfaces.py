"""What the loops ask of the world besides store and broker, and the errors that they raise."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from caudal.errors import JobError as JobError
from caudal.errors import UnreachableError as UnreachableError
from caudal.formats.job import Job, Request
from caudal.formats.keys import Task
from caudal.formats.outcomes import Outcome


class Clock(Protocol):
    """Time. No answer depends on it, only patience does."""

    def now(self) -> float:
        """Seconds since 1970, UTC; clocks of several machines differ."""

    def elapsed(self) -> float:
        """Seconds that never jump, for measuring how long something lasted here."""

    def sleep(self, seconds: float) -> None: ...


@dataclass(frozen=True)
class InputPart:
    """One stream of an input. `file` and `repaired` matter to the rejects report only."""

    data: bytes
    file: str = ""
    repaired: int = 0


# Stage (or table, for a map or the report) -> its parts, which may be read as they are iterated.
Inputs = Mapping[str, Collection[InputPart]]


MayGoOn = Callable[[], bool]  # whether a computation that is under way may go on


def go_on() -> bool:
    """Nobody will stop it."""
    return True


@dataclass(frozen=True)
class Planned:
    """A plan as it travels, and the tables that the client must send."""

    tables: tuple[str, ...]
    plan: bytes


class Compute(Protocol):
    """The engine: pure functions of immutable bytes. Same inputs, same rows."""

    def plan(self, request: Request, moment: float) -> Planned:
        """Validate a request and plan it. Raises ApplicationError, QueryError or UsageError."""

    def run(
        self, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn = go_on
    ) -> bytes:
        """The output of a map, fold or finish. Raises what DETERMINISTIC names if it must fail.

        `beat` is asked now and then, perhaps in another thread; once it says no, StoppedError.
        """


class ConflictError(JobError):
    """The request contradicts what the job already holds: correct it, or make a new job."""


class UnknownNameError(ConflictError):
    """The job has no such table or query. `kind` says which of them it lacks."""

    def __init__(self, kind: Literal["table", "query", "preview"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


class GoneError(JobError):
    """There is no such job, or it has ended: the message says how."""

    def __init__(self, message: str, outcome: Outcome | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome


class NotReadyError(GoneError):
    """What was asked for does not exist yet: ask again later."""


class CondemnedError(JobError):
    """A task crashes whoever runs it, or takes more than it may: its job fails."""


class NotNowError(JobError):
    """Whether a task can be done is unknown, and not its fault: hand it back and try again."""


class StoppedError(JobError):
    """A computation was stopped before its end, because its worker was told to (`MayGoOn`)."""


class BusyError(JobError):
    """Too much is waiting already: ask again later."""


SUSPECT_AFTER = 3  # deliveries that nobody answered


def is_suspect(delivery_count: int, threshold: int = SUSPECT_AFTER) -> bool:
    """Whether a task that is now delivered for the `delivery_count`-th time runs in a child.

    The count includes this delivery, as the broker port's does (RabbitMQ's `x-delivery-count` does
    not). The threshold weighs two costs. A true culprit kills one worker per delivery: it may
    kill three and no more. A false suspicion costs the start of a child, a few seconds, and never
    correctness; but a worker killed, and its replacement too, is an everyday matter, and should not
    slow down everything that was in flight.
    """
    return delivery_count > threshold
