"""Task events: a worker's loop reports each task to logs and metrics.

Rules
1. `began` is called before anything is done for a task, `ended` after its last step but the
   acknowledgement. Tasks that are taken along have events of their own (taken_along.py).
2. Events change no decision. A listener must not raise.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from caudal.broker.port import Delivery
from caudal.formats.output_sizes import Sizes


class TaskEnd(StrEnum):
    """How a delivery of a task ended."""

    DONE = "done"  # its output was created here
    ADOPTED = "adopted"  # computed here, but another worker's output was first
    SKIPPED = "skipped"  # no longer needed, already made, or postponed in favour of other tasks
    FAILED = "failed"  # the job failed with it
    HANDED_BACK = "handed back"  # to be delivered again


@dataclass
class TaskReport:
    """The report about one delivery. The loop fills it in step by step."""

    delivery: Delivery
    end: TaskEnd = TaskEnd.SKIPPED
    bytes_in: int = 0  # of the inputs that were given to the computation
    bytes_out: int = 0  # of the output that was created
    stages: Sizes = field(default_factory=dict)  # rows and bytes of each stage in the output
    reason: str | None = None
    needs_other: bool = False  # it was left to a worker of another version

    def note(self, end: TaskEnd, error: Exception | str) -> None:
        """Record the end, and the error as a reason of one line."""
        self.end = end
        self.reason = " ".join(str(error).split()) or type(error).__name__


class TaskEvents(Protocol):
    """A listener for task events."""

    def began(self, delivery: Delivery) -> None: ...

    def ended(self, report: TaskReport) -> None: ...


class NoTaskEvents:
    """A listener that does nothing."""

    def began(self, delivery: Delivery) -> None: ...

    def ended(self, report: TaskReport) -> None: ...
