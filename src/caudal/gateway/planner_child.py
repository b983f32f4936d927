"""A child process that plans requests, runs SELECTs over results and computes early rows of jobs,
one after another. Its parent may kill it at any moment.

Rules
1. The child says `ready` only when it is warm: libraries and models loaded, one plan made.
2. Requests and answers are frames on standard input and output: four bytes of length, then
   msgpack. Output that libraries print goes to standard error.
3. CPU and memory limits start anew with each request and apply to what that request adds. A child
   that exceeds them is killed by the kernel or gets a MemoryError; the parent knows both cases.
4. The child ends with its parent, and at the end of its input.
"""

import io
import os
import resource
import signal
import struct
import sys
import time
from typing import BinaryIO

import msgspec
import pyarrow as pa

from caudal.decoding import convert, msgpack_decoder
from caudal.duck.sandbox import SandboxLimits
from caudal.errors import CaudalError
from caudal.formats import job as job_format
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import Task
from caudal.gateway.select_rows import select_streams
from caudal.jobs.interfaces import InputPart
from caudal.kernels.sentiment import load_model
from caudal.model import Query, Table
from caudal.worker.compute import LocalCompute
from caudal.worker.suspect_child import described, die_with, soft_limit, used_data_bytes
from caudal.worker.task_steps import Steps, StepSettings

LENGTH = struct.Struct(">I")
EARLY_SECONDS = 10  # of CPU; on a busy machine that takes longer
_EARLY = SandboxLimits(memory_bytes=256 << 20, seconds=3.0 * EARLY_SECONDS)
_OUTRUN_BYTES = 1 << 30  # the parent samples 50 times a second; this stops faster growth


class PlanRequest(msgspec.Struct, frozen=True, tag="plan"):
    """A request to plan."""

    request: Request
    moment: float
    cpu_seconds: int
    memory_bytes: int


class SelectRequest(msgspec.Struct, frozen=True, tag="select"):
    """A SELECT over small tables, which are Arrow streams."""

    sql: str
    relations: dict[str, bytes]
    cpu_seconds: int
    memory_bytes: int


class TaskRequest(msgspec.Struct, frozen=True, tag="task"):
    """A fold or finish over a part of the data: rows that a job shows early."""

    job: bytes  # job.json
    task: Task
    inputs: dict[str, list[bytes]]
    cpu_seconds: int
    memory_bytes: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The child is warm and waits for the first request."""


class PlanMade(msgspec.Struct, frozen=True, tag="done"):
    """The encoded plan."""

    tables: tuple[str, ...]
    plan: bytes


class RowsMade(msgspec.Struct, frozen=True, tag="rows"):
    """The rows of a SELECT as an Arrow stream, and whether there were more."""

    rows: bytes
    cut: bool


class TaskMade(msgspec.Struct, frozen=True, tag="output"):
    """The output of a task."""

    output: bytes


class PlanFailed(msgspec.Struct, frozen=True, tag="raised"):
    """The exception that was raised, encoded as in worker/suspect_child.py."""

    kinds: list[list[str]]
    message: str
    memory: bool


Ask = PlanRequest | SelectRequest | TaskRequest
Answer = Ready | PlanMade | RowsMade | TaskMade | PlanFailed
_ASKS: msgspec.msgpack.Decoder[Ask] = msgpack_decoder(Ask)


def main(parent: int, models: list[str]) -> None:
    """Serve requests until the input ends."""
    die_with(parent)
    with os.fdopen(os.dup(1), "wb") as answers, os.fdopen(os.dup(0), "rb") as requests:
        os.dup2(2, 1)
        loaded = {name: load_model(name) for name in models}
        compute, steps = LocalCompute(models=loaded), Steps(StepSettings(_EARLY, loaded))
        _warm_up(compute)
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        soft_limit(resource.RLIMIT_CORE, 0)
        _write(answers, Ready())
        while (data := _read(requests)) is not None:
            _write(answers, _answered(compute, steps, _ASKS.decode(data)))


def _answered(compute: LocalCompute, steps: Steps, ask: Ask) -> Answer:
    soft_limit(resource.RLIMIT_CPU, int(time.process_time()) + 1 + ask.cpu_seconds)
    soft_limit(resource.RLIMIT_DATA, used_data_bytes() + 2 * ask.memory_bytes + _OUTRUN_BYTES)
    try:
        answer = _made(compute, steps, ask)
    except BaseException as error:  # every exception is reported to the parent
        answer = convert(described(error), PlanFailed)
    finally:
        soft_limit(resource.RLIMIT_DATA, resource.RLIM_INFINITY)
        soft_limit(resource.RLIMIT_CPU, resource.RLIM_INFINITY)
    return answer


def _made(compute: LocalCompute, steps: Steps, ask: Ask) -> Answer:
    match ask:
        case SelectRequest():
            return _selected(ask)
        case TaskRequest():
            return _computed(steps, ask)
        case _:
            return _planned(compute, ask)


def _planned(compute: LocalCompute, ask: PlanRequest) -> PlanMade:
    made = compute.plan(ask.request, ask.moment)
    return PlanMade(made.tables, made.plan)


def _selected(ask: SelectRequest) -> RowsMade:
    found = select_streams(ask.sql, ask.relations)
    return RowsMade(bytes_of(found.rows), found.cut)


def _computed(steps: Steps, ask: TaskRequest) -> TaskMade:
    inputs = {name: [InputPart(one) for one in parts] for name, parts in ask.inputs.items()}
    try:
        return TaskMade(steps.run(job_format.decode(ask.job, "job.json"), ask.task, inputs))
    except CaudalError:
        raise
    except BaseException:
        steps.relieve()  # a sandbox that ran out of memory is not used again
        raise


def bytes_of(rows: pa.Table) -> bytes:
    """Return rows as an Arrow stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def _warm_up(compute: LocalCompute) -> None:
    sql = "SELECT k, sentiment(k) AS s, items(k) AS i FROM raw"
    table = Table("t", ("t.csv",), ("k",), sql, "t.sql")
    ask = Query("q", "", "SELECT k, avg(s) FROM t GROUP BY k ORDER BY k", "q.sql")
    compute.plan(Request(Text("warming", "", (table,), (ask,)), options=Options()), 0.0)


def _read(requests: BinaryIO) -> bytes | None:
    head = requests.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = requests.read(length)
    return data if len(data) == length else None


def _write(answers: BinaryIO, answer: Answer) -> None:
    data = msgspec.msgpack.encode(answer)
    answers.write(LENGTH.pack(len(data)) + data)
    answers.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
