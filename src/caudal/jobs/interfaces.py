"""The interfaces that the loops need besides store and broker, and the errors that they raise."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from caudal.errors import JobError as JobError
from caudal.errors import UnreachableError as UnreachableError
from caudal.formats.job import Job, Request
from caudal.formats.keys import Task
from caudal.formats.outcomes import Outcome


class Clock(Protocol):
    """A clock. Only timeouts depend on it, never an answer."""

    def now(self) -> float:
        """Return the seconds since 1970, UTC. The clocks of different machines differ."""

    def elapsed(self) -> float:
        """Return the seconds of a clock that never jumps, to measure durations in this process."""

    def sleep(self, seconds: float) -> None: ...


@dataclass(frozen=True)
class InputPart:
    """One stream of an input. Only the rejects report uses `file`, `repaired` and `records`."""

    data: bytes
    file: str = ""
    repaired: int = 0
    records: Mapping[int, str] = field(default_factory=dict)  # of some of its rows, by line
    body: memoryview | None = None  # of a batch whose head alone is `data`


# Stage (or table, for a map or the report) -> its parts, which may be read as they are iterated.
Inputs = Mapping[str, Collection[InputPart]]


MayGoOn = Callable[[], bool]  # returns whether a running computation may continue


def go_on() -> bool:
    """Return True: the computation is never stopped."""
    return True


@dataclass(frozen=True)
class Planned:
    """An encoded plan, and the tables that the client must send."""

    tables: tuple[str, ...]
    plan: bytes


class Compute(Protocol):
    """The engine: pure functions of immutable bytes. Same inputs, same rows."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions of everything that rows of outputs may depend on, by name."""

    def plan(self, request: Request, moment: float) -> Planned:
        """Validate a request and plan it. Raise ApplicationError, QueryError or UsageError."""

    def run(
        self, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn = go_on
    ) -> bytes:
        """Return the output of a map, fold or finish. Raise an error of DETERMINISTIC if the task
        must fail.

        `beat` is called now and then, perhaps in another thread. When it returns False, the
        computation stops and raises StoppedError.
        """


class ConflictError(JobError):
    """The request contradicts what the job already holds. Correct it, or create a new job."""


class UnknownNameError(ConflictError):
    """The job has no such table, query or preview; `kind` says which of the three."""

    def __init__(self, kind: Literal["table", "query", "preview"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


class GoneError(JobError):
    """There is no such job, or it has ended; the message says how."""

    def __init__(self, message: str, outcome: Outcome | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome


class NotReadyError(GoneError):
    """The requested object does not exist yet. Ask again later."""


class CondemnedError(JobError):
    """A task crashes every worker, or exceeds its limits. Its job fails."""


class NotNowError(JobError):
    """A task could not be tried, and that is not its fault. Hand it back and try again."""


class StoppedError(JobError):
    """A computation was stopped before its end, because `MayGoOn` returned False."""


class BusyError(JobError):
    """Too much work is waiting already. Ask again later."""


SUSPECT_AFTER = 3  # deliveries without an answer


def is_suspect(delivery_count: int, threshold: int = SUSPECT_AFTER) -> bool:
    """Return whether a task that is delivered for the `delivery_count`-th time runs in a child.

    The count includes this delivery, like that of the broker port (RabbitMQ's `x-delivery-count`
    does not). The threshold balances two costs. A harmful task kills one worker per delivery: it
    may kill three, not more. A wrong suspicion costs the start of a child process, a few seconds,
    but never a wrong answer. Still, it is common that a worker is killed and its replacement too;
    that should not slow down every task that was in flight.
    """
    return delivery_count > threshold
