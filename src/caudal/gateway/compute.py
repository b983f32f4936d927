"""The compute port for many threads: child processes plan, and compute early rows. Plans are kept
(kept_plans.py).

Early rows (previews, and answers so far) get little memory and time, because they are optional:
workers compute the actual answer. A heavy one costs its child, never the gateway.
"""

from collections.abc import Mapping

from caudal.formats.job import Job, Request
from caudal.formats.keys import Task
from caudal.gateway.planners import Planners
from caudal.jobs.interfaces import Inputs, MayGoOn, Planned, go_on
from caudal.jobs.kept_plans import KeptPlans
from caudal.jobs.versions import engine_versions


class SharedCompute:
    """The compute port of a gateway. The caller owns the planners and closes them later."""

    def __init__(self, planners: Planners) -> None:
        self._planners = planners
        self._plans = KeptPlans(planners.plan)

    @property
    def versions(self) -> Mapping[str, str]:
        """See the port."""
        return engine_versions()

    def plan(self, request: Request, moment: float) -> Planned:
        """See the port."""
        return self._plans.plan(request, moment)

    def run(
        self, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn = go_on
    ) -> bytes:
        """See the port. Early rows are never a suspect's, and end by themselves."""
        del deliveries, beat
        return self._planners.run(job, task, inputs)
