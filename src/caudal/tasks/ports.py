"""What the loops ask of the world besides store and broker, and the errors that they raise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from caudal.core.tasks import Task
from caudal.errors import CaudalError
from caudal.formats.ending import Outcome
from caudal.formats.job import Job, Request


class Clock(Protocol):
    """Time. No answer depends on it, only patience does."""

    def now(self) -> float:
        """Seconds since 1970, UTC; clocks of several machines differ."""

    def elapsed(self) -> float:
        """Seconds that never jump, for measuring how long something lasted here."""

    def sleep(self, seconds: float) -> None: ...


@dataclass(frozen=True)
class Part:
    """One stream of an input. `file` and `repaired` matter to the rejects report only."""

    data: bytes
    file: str = ""
    repaired: int = 0


Inputs = Mapping[str, Sequence[Part]]  # stage (or table, for a map or the report) -> its parts


@dataclass(frozen=True)
class Planned:
    """A plan as it travels, and the tables that the client must send."""

    tables: tuple[str, ...]
    plan: bytes


class Compute(Protocol):
    """The engine: pure functions of immutable bytes. Same inputs, same rows."""

    def plan(self, request: Request, moment: float) -> Planned:
        """Validate a request and plan it. Raises ApplicationError, QueryError or UsageError."""

    def run(self, job: Job, task: Task, inputs: Inputs, deliveries: int) -> bytes:
        """The output of a map, fold or finish. Raises what DETERMINISTIC names if it must fail."""


class JobError(CaudalError):
    """A request about a job cannot be served."""


class ConflictError(JobError):
    """The request contradicts what the job already holds: correct it, or make a new job."""


class GoneError(JobError):
    """There is no such job, or it has ended: the message says how."""

    def __init__(self, message: str, outcome: Outcome | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome


class BusyError(JobError):
    """Too much is waiting already: ask again later."""


class UnreachableError(JobError):
    """No gateway answered: whether anything happened is unknown; ask again."""
