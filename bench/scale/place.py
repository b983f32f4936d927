"""Gateways and workers in one process, on a store that counts; computations are copied.

The first task of each kind is really computed. Later ones get the same rows under their own names,
so that a simulated crowd does all of the job machine's work and none of DuckDB's.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import msgspec

from bench.scale.billing import BilledStore
from caudal.broker.port import Broker
from caudal.formats import batch as batch_format
from caudal.formats import frame, mapped, outputs
from caudal.formats.job import Job, Options, Request, Text
from caudal.formats.keys import Task
from caudal.formats.outcomes import End, digest_of_digests
from caudal.jobs.interfaces import Clock, Inputs, MayGoOn, Planned, go_on
from caudal.jobs.ports import Ports
from caudal.jobs.runs import JobRuns
from caudal.model import Query, Table
from caudal.worker.compute import LocalCompute

QUERY = Query("q", "", "SELECT k, count(*) AS n FROM t GROUP BY k", "q.sql")
TABLE = Table("t", ("t.csv",), ("k",), "SELECT k FROM raw", "t.sql")
PARTITIONS = 4
REQUEST = Request(
    Text("scale", "", (TABLE,), (QUERY,)), options=Options(partitions=PARTITIONS, group=256)
)


_KEYS = "".join(f"{number}\n" for number in range(40)).encode()  # rows for every partition


@cache
def batch(number: int) -> bytes:
    """Return a tiny batch."""
    return batch_format.encode(
        table="t",
        number=number,
        file="t.csv",
        columns=("k",),
        first_line=2 + 40 * number,
        offset=2 + len(_KEYS) * number,
        newlines=40,
        data=_KEYS,
    )


def end(batches: int) -> End:
    """Return the end of a table of that many batches."""
    heads = [batch_format.describe(frame.of_bytes(batch(one)), "") for one in range(batches)]
    return End(
        batches, sum(one.bytes for one in heads), digest_of_digests(one.digest for one in heads)
    )


class CopiedCompute:
    """Computes the first task of each kind and copies its output for the others."""

    def __init__(self) -> None:
        self._real = LocalCompute()
        self._outputs: dict[tuple[str, str], bytes] = {}
        self._plans: dict[bytes, Planned] = {}

    @property
    def versions(self) -> Mapping[str, str]:
        return self._real.versions

    def close(self) -> None:
        self._real.close()

    def plan(self, request: Request, moment: float) -> Planned:
        """See Compute."""
        key = msgspec.json.encode(request)
        if key not in self._plans:
            self._plans[key] = self._real.plan(request, moment)
        return self._plans[key]

    def run(
        self, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn = go_on
    ) -> bytes:
        """See Compute. Inputs are read whole, as a real computation does."""
        name = task.kind, task.name
        if name not in self._outputs:
            self._outputs[name] = self._real.run(job, task, inputs, deliveries, beat)
            return self._outputs[name]
        read = {stage: [part.data for part in parts] for stage, parts in inputs.items()}
        return _renamed(self._outputs[name], job, task, read)


def _renamed(data: bytes, job: Job, task: Task, read: Mapping[str, list[bytes]]) -> bytes:
    """Return an output under the name of another task."""
    give = frame.of_bytes(data)
    if task.kind == "map":
        index, body = frame.decode(give, mapped.MAGIC, mapped.Index, "")
        source = batch_format.describe(frame.of_bytes(read[task.name][0]), "")
        new: object = msgspec.structs.replace(
            index, batch=task.number, source_digest=source.digest, file=source.file
        )
        return frame.encode(mapped.MAGIC, new) + data[body:]
    if task.kind == "fold":
        folded, body = outputs.decode_fold(give, "")
        new = msgspec.structs.replace(folded, partition=task.number)
        return frame.encode(outputs.FOLD_MAGIC, new) + data[body:]
    result, body = frame.decode(give, outputs.RESULT_MAGIC, outputs.ResultHeader, "")
    new = msgspec.structs.replace(result, job=job.id, run=job.run)
    return frame.encode(outputs.RESULT_MAGIC, new) + data[body:]


@dataclass
class SimulatedTime:
    """A clock that the simulation moves."""

    time: float = 1_700_000_000.0

    def now(self) -> float:
        return self.time

    def elapsed(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        """No time passes: the simulation decides when to go on."""


@dataclass
class Machinery:
    """What all processes share."""

    broker: Broker
    store: BilledStore = field(default_factory=BilledStore)
    clock: Clock = field(default_factory=SimulatedTime)
    compute: CopiedCompute = field(default_factory=CopiedCompute)
    _ids: "itertools.count[int]" = field(default_factory=itertools.count)

    def ports(self) -> Ports:
        """Return the ports of one more process, with memories of its own."""
        return Ports(
            store=self.store,
            broker=self.broker,
            compute=self.compute,
            clock=self.clock,
            new_id=lambda: f"run{next(self._ids)}",
            job_runs=JobRuns(self.store),
        )
