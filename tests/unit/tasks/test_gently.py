"""Tasks of the slow lane step back for whoever wants the processors."""

import os
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import msgspec
import pytest
from tests.harness.gateway_place import Place, create, send

from caudal.errors import QueryError
from caudal.formats.job import Job
from caudal.formats.keys import Task
from caudal.jobs.beat import TaskBeat
from caudal.jobs.inputs import gather
from caudal.jobs.interfaces import Inputs
from caudal.jobs.runs import JobRun
from caudal.worker.compute import LocalCompute
from caudal.worker.low_priority import LOWER, gently


def priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_what_runs_gently_gives_its_answer_and_leaves_others_as_they_are() -> None:
    before = priority()
    assert gently(priority) == before + LOWER
    assert priority() == before

    def fail() -> None:
        raise QueryError("it failed")

    with pytest.raises(QueryError, match="it failed"):
        gently(fail)


@dataclass
class Watched:
    """A compute that notes at which priority tasks run."""

    compute: LocalCompute
    seen: list[int]

    def __post_init__(self) -> None:
        steps = self.compute._steps
        run: Callable[[Job, Task, Inputs], bytes] = steps.run

        def noted(job: Job, task: Task, inputs: Inputs, *, alone: bool = False) -> bytes:
            self.seen.append(priority())
            return run(job, task, inputs)

        steps.run = noted  # type: ignore[method-assign]


@pytest.mark.parametrize("slow", [0, 1, 5])
def test_slow_tasks_run_at_low_priority(slow: int) -> None:
    with Place() as place, closing(LocalCompute()) as compute:
        watched = Watched(compute, [])
        client = place.client()
        create(client)
        send(client, "people")
        job_run = place.ports.job_runs.open("j")
        assert isinstance(job_run, JobRun)
        task = Task("map", "people", 0)
        message = job_run.message(task)
        beat = TaskBeat(place.ports, job_run, msgspec.structs.replace(message, slow=slow))
        inputs = gather(place.store, job_run, task)
        compute.run(job_run.job, task, inputs, 1, beat)
        assert watched.seen == [priority() + (LOWER if slow else 0)]
