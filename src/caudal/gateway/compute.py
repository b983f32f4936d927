"""The compute port for many threads: child processes plan; previews run here, one at a time. Plans
are kept (kept_plans.py).

A caller that waits too long for its turn gets BusyError. A preview gets little memory and time,
because it is optional: workers compute the actual answer.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import BoundedSemaphore

from caudal.duck.sandbox import SandboxLimits
from caudal.formats.job import Job, Request
from caudal.formats.keys import Task
from caudal.gateway.kept_plans import KeptPlans
from caudal.gateway.planners import Planners
from caudal.jobs.interfaces import BusyError, Inputs, MayGoOn, Planned, go_on
from caudal.worker.compute import LocalCompute

_PREVIEWS = SandboxLimits(memory_bytes=256 << 20, seconds=10.0)


class SharedCompute:
    """The compute port of a gateway. The caller owns the planners and closes them later."""

    def __init__(self, planners: Planners, wait_seconds: float = 20.0) -> None:
        self._local = LocalCompute(_PREVIEWS)
        self._plans = KeptPlans(planners.plan)
        self._previews = BoundedSemaphore(1)
        self._wait_seconds = wait_seconds

    @property
    def versions(self) -> Mapping[str, str]:
        """See the port."""
        return self._local.versions

    def plan(self, request: Request, moment: float) -> Planned:
        """See the port."""
        return self._plans.plan(request, moment)

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
            raise BusyError("too many previews are running here: try again in a moment")
        try:
            yield
        finally:
            turns.release()
