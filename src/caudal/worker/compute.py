"""The engine behind the compute port, in this process. Not for use by two threads at once."""

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
from caudal.jobs.plan import to_json
from caudal.kernels.sentiment import SentimentModel, load_model
from caudal.model import Application
from caudal.process.logs import fields
from caudal.worker.low_priority import gently
from caudal.worker.overseer import Overseer
from caudal.worker.suspect_tasks import Suspects
from caudal.worker.task_steps import Clean, OpenSandbox, Steps, StepSettings
from caudal.worker.turns import SharedTurns

_FORESEEN = (CaudalError, OSError)  # all else, want of memory too, is tried again in a child

_log = logging.getLogger(__name__)


class LocalCompute:
    """Plans and runs in sandboxes of this process; suspects in a child process."""

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
        """`confirms`: a task that takes too much memory is judged in a process of its own; else
        in this one, while nobody with the same `turns` computes."""
        self._limits = limits or SandboxLimits()
        self._confirms = confirms
        self._turns = turns or SharedTurns()
        self._models = models or {}  # loaded before, by name
        self._steps = Steps(StepSettings(self._limits, self._models, open_sandbox, clean))
        self._suspects = suspects or Suspects()
        self._stopping = False

    def close(self) -> None:
        self._steps.close()

    def relieve(self) -> None:
        """Let go of everything that can be made again, and give its memory back."""
        self._steps.relieve()
        give_back()

    def interrupt(self) -> None:
        """End what is running in this process, from another thread: the process is stopping, and
        tasks are handed back from now on."""
        self._stopping = True
        self._steps.interrupt()

    def plan(self, request: Request, moment: float) -> Planned:
        """See the port."""
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
        from caudal.duck.job_plan import make_plan  # with the SQL parser; few workers plan

        model = self._models.get(text.sentiment) or load_model(text.sentiment)
        at = datetime.fromtimestamp(moment, UTC)
        split = make_plan(
            *(app, request.queries or None, request.parameters, model, at),
            trusted=self._limits.trusted,
        )
        return Planned(tuple(one.table.name for one in split.maps), to_json(split))

    def run(
        self, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn = go_on
    ) -> bytes:
        """See the port. A task that was delivered often may be killing its workers: it runs in a
        child process, which takes the harm in their place. So does one that was short of memory:
        what this process held besides may be to blame, and a query fails for its own faults.
        A task of the slow lane runs at low priority."""
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
        """In this process. What cannot be the task's fault for certain is confirmed or refuted at
        once, by a child that shares nothing with this process: who repeats it there is to blame."""
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
        """In this process, while no other task runs: want of memory is now the task's own."""
        with self._turns.alone():
            if overseer.stopped.is_set() or self._stopping:
                raise NotNowError("it was interrupted")
            try:
                made = self._steps.run(job, task, inputs, alone=True)
            except MemoryError as error:
                raise QueryError("the task needs more memory than there is") from error
            return self._checked(made, task, overseer)

    def _checked(self, made: bytes, task: Task, overseer: Overseer) -> bytes:
        """An interruption may look like anything: a scan that failed meanwhile has not."""
        stopped = overseer.stopped.is_set() or self._stopping
        if stopped and task.kind == "map" and mapped.open_bytes(made).index.failed:
            raise NotNowError("it was interrupted")
        return made

    def _require_doubt(self, error: Exception) -> None:
        """Raise an error that is the task's own for certain. Want of memory may be the fault of
        what this process held besides, and an error that nobody foresaw that of anything."""
        if isinstance(error, _FORESEEN) and not is_of_memory(error):
            raise error
