"""The compute port, implemented in this process. Use it from one thread at a time."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from caudal.duck import steps
from caudal.duck.containment import contained_task, give_back, is_of_memory
from caudal.duck.sandbox import Sandbox, SandboxLimits
from caudal.errors import ApplicationError, CaudalError, InterruptedQueryError, QueryError
from caudal.formats import mapped
from caudal.formats.job import Job, Request
from caudal.formats.keys import Task
from caudal.jobs.interfaces import (
    Inputs,
    MayGoOn,
    NotNowError,
    Planned,
    StoppedError,
    go_on,
    is_suspect,
)
from caudal.jobs.plan import NO_PLAN, to_json
from caudal.jobs.versions import engine_versions
from caudal.kernels.sentiment import SentimentModel, load_model
from caudal.model import Application
from caudal.process.logs import fields
from caudal.worker.low_priority import gently
from caudal.worker.overseer import Overseer
from caudal.worker.suspect_tasks import Suspects
from caudal.worker.task_steps import Clean, OpenSandbox, Steps, StepSettings
from caudal.worker.turns import SharedTurns

_FORESEEN = (CaudalError, OSError)  # other errors, also of memory, are tried again in a child

_log = logging.getLogger(__name__)


class LocalCompute:
    """Plans and runs tasks in sandboxes of this process, and suspect tasks in a child process."""

    def __init__(
        self,
        limits: SandboxLimits | None = None,
        suspects: Suspects | None = None,
        models: Mapping[str, SentimentModel] | None = None,
        *,
        confirms: bool = False,
        turns: SharedTurns | None = None,
        open_sandbox: OpenSandbox = Sandbox,
        clean: Clean = steps.clean_batch,
    ) -> None:
        """With `confirms`, run a task that took too much memory again in a child process; else
        in this process, while no other compute with the same `turns` runs."""
        self._limits = limits or SandboxLimits()
        self._confirms = confirms
        self._turns = turns or SharedTurns()
        self._models = models or {}  # already loaded, by name
        self._steps = Steps(StepSettings(self._limits, self._models, open_sandbox, clean))
        self._suspects = suspects or Suspects()
        self._stopping = False

    def close(self) -> None:
        self._steps.close()

    def relieve(self) -> None:
        """Drop everything that can be made again, and return its memory to the system."""
        self._steps.relieve()
        give_back()

    def interrupt(self) -> None:
        """Interrupt the running task, from another thread. The process is stopping: from now on
        tasks are handed back."""
        self._stopping = True
        self._steps.interrupt()

    @property
    def versions(self) -> Mapping[str, str]:
        """See the port."""
        return engine_versions()

    def plan(self, request: Request, moment: float) -> Planned:
        """See the port."""
        if request.upkeep:
            return Planned((), to_json(NO_PLAN))
        text = request.application
        app = Application(
            name=text.name,
            title=text.title,
            folder=Path(),
            tables=text.tables,
            queries=text.queries,
            parameters=text.parameters,
            sentiment=text.sentiment,
        )
        from caudal.duck.job_plan import make_load_plan, make_plan  # with the SQL parser

        model = self._models.get(text.sentiment) or load_model(text.sentiment)
        at = datetime.fromtimestamp(moment, UTC)
        if request.load:
            loaded = {source.table for source in request.load.sources}
            split = make_load_plan(app, loaded, model, trusted=self._limits.trusted)
        else:
            asked = request.dataset
            split = make_plan(
                *(app, request.queries or None, request.parameters, model, at),
                trusted=self._limits.trusted,
                stored={one.name: dict(one.columns) for one in asked.tables} if asked else None,
            )
        return Planned(tuple(one.table.name for one in split.maps), to_json(split))

    def run(
        self, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn = go_on
    ) -> bytes:
        """See the port. A task that was delivered often may crash its worker, so it runs in a
        child process. So does a task that lacked memory: other data of this process may be the
        cause, and a query may fail only for its own faults. A task of the slow lane runs at low
        priority."""
        run = partial(self._run, job, task, inputs, deliveries, beat)
        return gently(run) if getattr(beat, "is_slow", False) else run()

    def _run(self, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn) -> bytes:
        with Overseer(beat, self._steps.interrupt) as overseer:
            try:
                if is_suspect(deliveries):
                    return self._suspects.run(job, task, inputs, self._limits, overseer.stopped)
                return self._computed(job, task, inputs, overseer)
            except (QueryError, ApplicationError, NotNowError) as error:
                if overseer.stopped.is_set():
                    raise StoppedError("it was stopped") from error
                if self._stopping:
                    raise NotNowError("the worker is stopping") from error
                if isinstance(error, InterruptedQueryError):
                    raise NotNowError("it was interrupted") from error
                raise

    def _computed(self, job: Job, task: Task, inputs: Inputs, overseer: Overseer) -> bytes:
        """Compute in this process. If an error may not be the task's fault, run the task again in a
        child process, which shares nothing with this one: a task that fails there is at fault."""
        try:
            with self._turns.beside(), contained_task(self._steps.interrupt):
                return self._checked(self._steps.run(job, task, inputs), task, overseer)
        except Exception as error:
            if not overseer.stopped.is_set():  # else DuckDB may be interrupted anywhere
                self._require_doubt(error)
            if overseer.stopped.is_set() or self._stopping:
                raise NotNowError("it was interrupted") from error
            about = fields(job=job.id, task=task.kind, reason=repr(error))
            _log.warning("a doubtful error: the task runs again, apart", extra=about)
            in_child = self._confirms or not is_of_memory(error)
        self.relieve()
        if not in_child:
            return self._computed_alone(job, task, inputs, overseer)
        return self._suspects.run(job, task, inputs, self._limits, overseer.stopped)

    def _computed_alone(self, job: Job, task: Task, inputs: Inputs, overseer: Overseer) -> bytes:
        """Compute in this process while no other task runs: a lack of memory is then its own."""
        with self._turns.alone():
            if overseer.stopped.is_set() or self._stopping:
                raise NotNowError("it was interrupted")
            try:
                made = self._steps.run(job, task, inputs, alone=True)
            except MemoryError as error:
                raise QueryError("the task needs more memory than there is") from error
            return self._checked(made, task, overseer)

    def _checked(self, made: bytes, task: Task, overseer: Overseer) -> bytes:
        """Return the output; raise if its failed scans may have been interrupted."""
        stopped = overseer.stopped.is_set() or self._stopping
        if stopped and task.kind == "map" and mapped.open_bytes(made).index.failed:
            raise NotNowError("it was interrupted")
        return made

    def _require_doubt(self, error: Exception) -> None:
        """Raise the error if it is certainly the task's own. Other data of this process may cause a
        lack of memory, and anything may cause an unexpected error."""
        if isinstance(error, _FORESEEN) and not is_of_memory(error):
            raise error
