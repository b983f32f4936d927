"""Runs a suspect task alone in a child process, and turns the verdict into an output or an error.

Rules
1. A process runs one suspect at a time, regardless of its threads, because the memory and time of
   one task are judged. A second suspect is handed back.
2. The verdict Condemned raises CondemnedError. An error of the computation itself is raised here
   again. Everything else raises NotNowError, and the task is handed back: it may be innocent.
3. The child gets what the worker had: the content of job.json, the task, and its inputs as files.
4. A child that takes too much memory is condemned by the parent. But the child of a map interrupts
   the scan before that, because only the child knows which scan it is. Then only that scan fails
   (ADR 27).
"""

import threading
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from caudal.decoding import decode_msgpack
from caudal.duck.containment import RESERVE_BYTES, contained_task, memory_bound
from caudal.duck.sandbox import SandboxLimits
from caudal.formats import job as job_format
from caudal.formats.job import Job
from caudal.formats.keys import Task
from caudal.jobs.interfaces import CondemnedError, InputPart, Inputs, NotNowError
from caudal.worker.suspect_child import Computation
from caudal.worker.suspects import (
    Condemned,
    Failed,
    Finished,
    Inconclusive,
    SuspectCall,
    SuspectLimits,
    run_suspect,
)
from caudal.worker.task_steps import Steps, StepSettings

_ALONE = threading.Lock()  # rule 1


class _Input(msgspec.Struct, frozen=True):
    """One part of an input: the name of the file with its bytes, and its other attributes."""

    content: str
    file: str
    repaired: int
    records: dict[int, str] = {}


class _Suspect(msgspec.Struct, frozen=True):
    """The arguments of the child."""

    job: bytes
    task: Task
    inputs: dict[str, list[_Input]]
    memory_bytes: int  # limits of its sandboxes, as in the worker
    seconds: float
    spills: bool
    process_bytes: int  # limit that the child itself observes (rule 4)


def compute_suspect(arguments: bytes, folder: Path) -> bytes:
    """Compute the task in the child, with the same steps as in a worker."""
    suspect = decode_msgpack(arguments, _Suspect)
    inputs = {
        name: [
            InputPart((folder / one.content).read_bytes(), one.file, one.repaired, one.records)
            for one in described
        ]
        for name, described in suspect.inputs.items()
    }
    spill = folder if suspect.spills else None
    steps = Steps(StepSettings(SandboxLimits(suspect.memory_bytes, suspect.seconds, spill)))
    job = job_format.decode(suspect.job, "job.json")
    with memory_bound(suspect.process_bytes, tasks=True), contained_task(steps.interrupt):
        return steps.run(job, suspect.task, inputs, alone=True)


@dataclass(frozen=True)
class Suspects:
    """The runner of suspects. `workspace` holds their inputs; setting `stop` ends them."""

    limits: SuspectLimits = field(default_factory=SuspectLimits)
    workspace: Path | None = None
    stop: threading.Event | None = None
    compute: Computation = compute_suspect

    def run(
        self,
        job: Job,
        task: Task,
        inputs: Inputs,
        sandbox: SandboxLimits,
        stopped: threading.Event | None = None,
    ) -> bytes:
        """Return the task's output, or raise by rule 2. Setting `stopped` ends this task."""
        if not _ALONE.acquire(blocking=False):
            raise NotNowError("another suspect task is running in this process")
        try:
            call = self._call(job, task, inputs, sandbox)
            signals = tuple(one for one in (self.stop, stopped) if one is not None)
            verdict = run_suspect(call, self.limits, workspace=self.workspace, stop=signals)
        finally:
            _ALONE.release()
        match verdict:
            case Finished(output):
                return output
            case Failed(error):
                raise error
            case Condemned(reason):
                raise CondemnedError(f"{task.kind} {task.name} {task.number}: {reason}")
            case Inconclusive(reason):
                raise NotNowError(reason)

    def _process_bytes(self, task: Task) -> int:
        """Return the memory limit that the child itself observes (rule 4)."""
        most = self.limits.memory_bytes
        if task.kind != "map":
            return most + RESERVE_BYTES
        return max(most - 2 * RESERVE_BYTES, most // 2)

    def _call(self, job: Job, task: Task, inputs: Inputs, sandbox: SandboxLimits) -> SuspectCall:
        files: dict[str, bytes | Path] = {}
        described: dict[str, list[_Input]] = {}
        for name, parts in inputs.items():
            described[name] = []
            for part in parts:
                content = str(len(files))
                files[content] = part.data
                records = dict(part.records)
                described[name].append(_Input(content, part.file, part.repaired, records))
        suspect = _Suspect(
            job=job_format.encode(job),
            task=task,
            inputs=described,
            memory_bytes=sandbox.memory_bytes,
            seconds=sandbox.seconds,
            spills=sandbox.spill is not None,
            process_bytes=self._process_bytes(task),
        )
        return SuspectCall(self.compute, msgspec.msgpack.encode(suspect), files)
