"""The check that a worker repeats while it computes a task: may the task continue?

Rules
1. A task may continue as long as its run of the job has not ended. Otherwise it is stopped and
   dropped.
2. A worker that computes for a while leaves marks in the store. Every few seconds a new mark
   replaces the old one. While the marks change, reconcilers do not publish the task again.
3. A task that takes long gives up its worker if its job is crowded (a reconciler found jobs of
   several owners) and another task waits. It goes to the end of the slow lane and starts again
   there with twice the time. So slow tasks take turns, and each finally gets enough time.
4. Quick workers are kept free for short tasks. There a slow task gives up its worker as soon as
   any task waits that is not slow. Without quick workers, endless queries of one owner would
   occupy all workers.
5. If the store or broker does not answer, the task continues.
"""

import contextlib
from dataclasses import dataclass, field
from enum import Enum

from caudal.broker.port import BrokerError
from caudal.errors import AlreadyExistsError, FormatError, StoreError
from caudal.formats.keys import Lane, Message
from caudal.jobs import objects
from caudal.jobs.ports import Ports
from caudal.jobs.runs import JobRun


class Stopping(Enum):
    """The reason why a task is stopped."""

    UNWANTED = "its job has ended"
    MAKES_WAY = "it takes long, and others wait"


@dataclass
class TaskBeat:
    """One attempt at one task. It is called repeatedly, from one thread."""

    ports: Ports
    job_run: JobRun
    message: Message
    stopping: Stopping | None = None
    _began: float = field(init=False)
    _marked: float = field(init=False)
    _looked: float = field(init=False)
    _marks: int = 0
    _name: str = ""

    def __post_init__(self) -> None:
        self._began = self._marked = self._looked = self.ports.clock.elapsed()

    def __call__(self) -> bool:
        """Return whether the task may continue."""
        with contextlib.suppress(StoreError, BrokerError, FormatError):
            now = self.ports.clock.elapsed()
            if now - self._looked >= self.ports.bounds.look_seconds:
                self._looked = now
                if self.ports.job_runs.running(self.message) is None:
                    self.stopping = Stopping.UNWANTED
                    return False
            if now - self._marked >= self.ports.bounds.mark_seconds:
                self._marked = now
                self._mark()
            if self._makes_way(now - self._began):
                self.stopping = Stopping.MAKES_WAY
                return False
        return True

    @property
    def is_slow(self) -> bool:
        """Whether it is a task of the slow lane, which runs at low priority (compute.py)."""
        return self.message.slow > 0

    def end(self) -> None:
        """Delete the last mark. A mark that stays is deleted with the job's data."""
        if self._marks:
            with contextlib.suppress(StoreError):
                self.ports.store.delete(self._key(self._marks), lasting=False)

    def _mark(self) -> None:
        self._name = self._name or self.ports.new_id()
        self._marks += 1
        with contextlib.suppress(AlreadyExistsError):
            self.ports.store.create(self._key(self._marks), b"running", lasting=False)
        if self._marks > 1:
            self.ports.store.delete(self._key(self._marks - 1), lasting=False)

    def _key(self, number: int) -> str:
        return f"{self.job_run.keys.running(self.message.task)}{number:06}-{self._name}"

    def _makes_way(self, passed: float) -> bool:
        bounds, slow = self.ports.bounds, self.message.slow
        is_over = passed >= bounds.slice_seconds * (1 << slow)
        if not is_over and not (slow and bounds.quick):
            return False
        depths = self.ports.broker.depths()
        waiting = any(count for lane, count in depths.items() if lane is not Lane.SLOW)
        others = waiting or bool(is_over and slow and depths[Lane.SLOW])
        return others and objects.exists(self.ports.store, self.job_run.keys.crowded)
