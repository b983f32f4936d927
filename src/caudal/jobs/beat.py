"""What a worker asks itself again and again while it computes a task: may it go on?

Rules
1. A task is wanted as long as its life runs. One whose job ended is stopped, and forgotten.
2. Whoever computes for a while leaves marks in the store, a new one every few seconds, each in
   place of the one before. As long as they change, reconcilers publish the task for nobody else.
3. A task that takes long makes way, if its job is crowded (a reconciler found jobs of several
   owners) and something waits: it goes to the end of the slow lane and begins again there, with
   twice the time. So slow tasks take turns, and each of them has its whole time at last.
4. Quick workers are kept free for what is short: there a slow task makes way as soon as anything
   waits that is not slow. Without them, the endless queries of one owner would hold all workers.
5. A store or broker that does not answer stops nothing: the task goes on.
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
    """Why a task does not go on."""

    UNWANTED = "its job has ended"
    MAKES_WAY = "it takes long, and others wait"


@dataclass
class TaskBeat:
    """One attempt at one task; to be asked again and again, from any one thread."""

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
        """Whether to go on."""
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
        """Is it a task of the slow lane? Such ones run at low priority (compute.py)."""
        return self.message.slow > 0

    def end(self) -> None:
        """Take the last mark away. What is left behind is cleaned up with the job."""
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
