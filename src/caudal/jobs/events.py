"""Task events: what the loop of a worker says about each task, for logs and metrics.

Rules
1. `began` comes before anything is done for a delivery, `ended` after the broker has its answer.
2. Events decide nothing. Whoever is told must not raise.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from caudal.broker.port import Delivery


class TaskEnd(StrEnum):
    """How a delivery of a task ended."""

    DONE = "done"  # its output was created here
    ADOPTED = "adopted"  # computed here, but another worker's output was first
    SKIPPED = "skipped"  # not wanted any more, made already, or put off for others
    FAILED = "failed"  # and its job with it
    HANDED_BACK = "handed back"  # to be delivered again


@dataclass
class TaskReport:
    """What is known of one delivery. The loop fills it in on the way."""

    delivery: Delivery
    end: TaskEnd = TaskEnd.SKIPPED
    bytes_in: int = 0  # of the inputs that were given to the computation
    bytes_out: int = 0  # of the output that was created
    reason: str | None = None

    def note(self, end: TaskEnd, error: Exception | str) -> None:
        """Note an end that has a reason, as one line."""
        self.end = end
        self.reason = " ".join(str(error).split()) or type(error).__name__


class TaskEvents(Protocol):
    """Whoever wants to be told."""

    def began(self, delivery: Delivery) -> None: ...

    def ended(self, report: TaskReport) -> None: ...


class NoTaskEvents:
    """Nobody wants to be told."""

    def began(self, delivery: Delivery) -> None: ...

    def ended(self, report: TaskReport) -> None: ...
