"""The engine for many threads: plans are made by children, previews here, one at a time.

Whoever waits too long for a turn is told that the gateway is busy. A preview gets little memory and
time: it is a courtesy, and the answer itself is made by workers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from caudal.duck.sandbox import SandboxLimits
from caudal.formats.job import Job, Request
from caudal.formats.keys import Task
from caudal.gateway.planners import Planners
from caudal.jobs.interfaces import BusyError, Inputs, MayGoOn, Planned, go_on
from caudal.worker.compute import LocalCompute

_PREVIEWS = SandboxLimits(memory_bytes=256 << 20, seconds=10.0)


class SharedCompute:
    """The compute port of a gateway. The planners are the caller's, and outlive it."""

    def __init__(self, planners: Planners, wait_seconds: float = 20.0) -> None:
        self._local = LocalCompute(_PREVIEWS)
        self._planners = planners
        self._previews = BoundedSemaphore(1)
        self._wait_seconds = wait_seconds

    def plan(self, request: Request, moment: float) -> Planned:
        """See the port."""
        return self._planners.plan(request, moment)

    def run(
        self, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn = go_on
    ) -> bytes:
        """See the port."""
        with self._turn(self._previews):
            return self._local.run(job, task, inputs, deliveries, beat)

    def close(self) -> None:
        self._local.close()

    @contextmanager
    def _turn(self, turns: BoundedSemaphore) -> Iterator[None]:
        if not turns.acquire(timeout=self._wait_seconds):
            raise BusyError("too many previews are made here: try again in a moment")
        try:
            yield
        finally:
            turns.release()
