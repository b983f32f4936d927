"""Measured unit costs: requests, messages and memory of one act of the job machine."""

import time
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from bench.scale.billing import Bill
from bench.scale.place import REQUEST, Machinery, SimulatedTime, batch, end
from caudal.broker import MemoryBroker
from caudal.formats.keys import Message
from caudal.jobs import execute
from caudal.jobs.execute import TurnResult
from caudal.jobs.janitor import Janitor
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.service import JobService

BATCHES = 24
_MANY = 40  # jobs, to see what one more costs


class Units(msgspec.Struct, frozen=True):
    """Requests by class, messages and CPU seconds of each act; bytes of a gateway's memory.

    `per_batch` is what one more batch of the job adds to an act.
    """

    requests: dict[str, dict[str, float]]
    per_batch: dict[str, dict[str, float]]
    messages: dict[str, float]
    cpu_seconds: dict[str, float]
    job_memory_bytes: float


class CountingBroker(MemoryBroker):
    """Counts published messages."""

    published = 0

    def publish(self, messages: Sequence[Message]) -> None:
        self.published += len(messages)
        super().publish(messages)


@dataclass
class Measurement:
    """Bills, messages and CPU times, collected by act."""

    place: Machinery
    broker: CountingBroker
    bills: dict[str, Bill] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    cpu: Counter[str] = field(default_factory=Counter)

    def note(self, act: str, before: Bill, published: int, began: float) -> None:
        """Add what was asked for since then."""
        self.bills.setdefault(act, Counter()).update(self.place.store.bill - before)
        self.counts[act] += 1
        self.messages[act] += self.broker.published - published
        self.cpu[act] += time.process_time() - began  # type: ignore[assignment]

    def start(self) -> tuple[Bill, int, float]:
        return self.place.store.bill.copy(), self.broker.published, time.process_time()

    def mean(self, what: Mapping[str, float]) -> dict[str, float]:
        return {act: what[act] / self.counts[act] for act in self.counts}


def measure() -> Units:
    """Run a job and one of twice as many batches; tell apart what a batch adds."""
    one, two = _measured(BATCHES), _measured(2 * BATCHES)
    slopes = {
        act: {
            kind: (two.requests[act].get(kind, 0) - count) / BATCHES for kind, count in bill.items()
        }
        for act, bill in one.requests.items()
    }
    bases = {
        act: {kind: count - BATCHES * slopes[act][kind] for kind, count in bill.items()}
        for act, bill in one.requests.items()
    }
    growing = {act: bill for act, bill in slopes.items() if act in ("merge task", "fold task")}
    fixed = {act: bases[act] if act in growing else bill for act, bill in one.requests.items()}
    return msgspec.structs.replace(one, requests=_rounded(fixed), per_batch=_rounded(growing))


def _rounded(bills: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        act: {kind: round(count, 3) for kind, count in bill.items()} for act, bill in bills.items()
    }


def _measured(batches: int) -> Units:
    """Run one job, then rounds over one and over many jobs."""
    broker = CountingBroker()
    place = Machinery(broker)
    noted = Measurement(place, broker)
    try:
        gateway = JobService(place.ports(), "g1")
        _send(noted, gateway, "first", batches)
        _work(noted)
        memory = _rounds(noted, gateway)
    finally:
        place.compute.close()
    requests = {
        act: {kind: count / noted.counts[act] for kind, count in sorted(bill.items())}
        for act, bill in noted.bills.items()
    }
    return Units(requests, {}, noted.mean(noted.messages), noted.mean(noted.cpu), memory)


def _send(noted: Measurement, gateway: JobService, job: str, batches: int) -> None:
    begun = noted.start()
    gateway.create(job, "me", REQUEST)
    noted.note("create a job", *begun)
    for number in range(batches):
        begun = noted.start()
        gateway.put_batch(job, "me", batch(number))
        noted.note("take a batch", *begun)
    begun = noted.start()
    gateway.put_end(job, "me", "t", end(batches))
    noted.note("end a table", *begun)
    begun = noted.start()
    gateway.status(job, "me")
    noted.note("tell the status", *begun)


def _work(noted: Measurement) -> None:
    ports = noted.place.ports()
    consumer = ports.broker.consume()
    while True:
        begun = noted.start()
        delivery = consumer.take()
        if delivery is None:
            return
        ended = execute.execute_task(ports, consumer, delivery)
        assert ended is TurnResult.ACKNOWLEDGED
        noted.note(f"{delivery.message.task.kind} task", *begun)


def _rounds(noted: Measurement, gateway: JobService) -> float:
    """Rounds of both loops: over an ended job, and over many running jobs."""
    clock = noted.place.clock
    assert isinstance(clock, SimulatedTime)
    reconciler, janitor = Reconciler(noted.place.ports()), Janitor(noted.place.ports())
    for _ in range(3):
        reconciler.round()
        janitor.round()
    for act, loop in (("idle reconciler round", reconciler), ("idle janitor round", janitor)):
        begun = noted.start()
        loop.round()
        noted.note(act, *begun)
    begun = noted.start()
    for seconds in (200, 2 * 86_400, 0):  # it leaves the running ones, expires, and is gone
        clock.time += seconds
        janitor.round()
    noted.note("janitor: an ended job", *begun)
    _per_job(noted, "janitor: an ended job", "idle janitor round", jobs=1, rounds=3)
    for number in range(_MANY):
        gateway.create(f"more{number}", "me", REQUEST)
        for one in range(4):
            gateway.put_batch(f"more{number}", "me", batch(one))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    reconciler.round()
    janitor.round()
    memory = (tracemalloc.get_traced_memory()[0] - before) / _MANY
    tracemalloc.stop()
    for name, loop in (("reconciler", reconciler), ("janitor", janitor)):
        begun = noted.start()
        loop.round()
        noted.note(f"{name}: a running job", *begun)
        _per_job(noted, f"{name}: a running job", f"idle {name} round")
    return memory


def _per_job(noted: Measurement, act: str, idle: str, jobs: int = _MANY, rounds: int = 1) -> None:
    """Leave only what one job adds to a round that finds none."""
    bill = noted.bills[act]
    for kind, count in noted.bills[idle].items():
        bill[kind] = max(0, bill[kind] - rounds * count)
    noted.bills[act] = Counter({kind: count for kind, count in bill.items() if count})
    noted.counts[act] = jobs
