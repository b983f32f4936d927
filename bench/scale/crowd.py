"""A crowd, simulated event by event: many gateways and workers on the real job machine.

Real: the job service, the five steps of a task, readiness, lanes, reconcilers, and what they read,
list and create. Simulated: the time that a computation or a request to the store takes, and the
broker, which gives every worker the next message of its lanes in turn. A task is carried out when
its computation ends, so two workers that hold the same task both compute it.
"""

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean

import msgspec

from bench.scale.place import PARTITIONS, REQUEST, Machinery, SimulatedTime, batch, end
from caudal.broker.memory import MemoryBroker, MemoryConsumer
from caudal.broker.port import Delivery
from caudal.formats.keys import Message
from caudal.jobs import execute
from caudal.jobs.events import TaskEnd, TaskReport
from caudal.jobs.ports import Ports
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.service import JobService
from caudal.jobs.shared_maps import is_made

TASK_SECONDS = 1.0, 3.0  # of a computation, evenly spread; below the first mark of a worker
REQUEST_SECONDS = 0.02  # of one request to the store
SIZES = (4, 4, 4, 8, 8, 40)  # batches of a job
_PAUSE = 1.0  # of a reconciler; twice the length of its last round, if that is more
_SENT_SECONDS = 0.05  # between two batches of a client
_WARM = 0.25  # of the time, before waiting is measured


class Outlook(msgspec.Struct, frozen=True):
    """What came of one load."""

    workers: int
    gateways: int
    utilisation: float  # as intended
    busy: float  # as measured
    jobs: int
    tasks: int
    waited_mean: float
    waited_95: float
    job_mean: float  # seconds from a job's last batch to its end
    job_95: float
    messages_per_job: float
    worker_requests_per_job: float
    gateway_requests_per_job: float
    loop_requests_per_second: float
    round_seconds: float
    computed_twice: int


class TimedBroker(MemoryBroker):
    """Knows since when each message waits, and wakes an idle worker for it."""

    def __init__(self, clock: SimulatedTime, wake: Callable[[], None]) -> None:
        super().__init__()
        self._clock, self._wake = clock, wake
        self.since: dict[Message, float] = {}
        self.published = 0

    def publish(self, messages: Sequence[Message]) -> None:
        super().publish(messages)
        self.published += len(messages)
        for message in messages:
            self.since.setdefault(message, self._clock.time)
            self._wake()


class Ends:
    """How tasks ended."""

    def __init__(self) -> None:
        self.counts: Counter[TaskEnd] = Counter()

    def began(self, delivery: Delivery) -> None: ...

    def ended(self, report: TaskReport) -> None:
        self.counts[report.end] += 1


@dataclass
class Crowd:
    """One run with a seed. `load` is the share of the workers that tasks keep busy."""

    workers: int
    gateways: int
    load: float
    seconds: float
    seed: int = 1
    ends: Ends = field(default_factory=Ends)

    def __post_init__(self) -> None:
        self.chance, self.clock = random.Random(self.seed), SimulatedTime()
        self.broker = TimedBroker(self.clock, self._wake)
        self.place = Machinery(self.broker, clock=self.clock)
        self._agenda: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()
        self._idle: list[int] = []
        self._waits: list[float] = []
        self._lasted: list[float] = []
        self._busy_seconds = self._round_seconds = 0.0
        self._rounds = self._tasks = 0
        self._warm = self._until = 0.0
        self._bills: Counter[str] = Counter()
        self._sent: dict[str, float] = {}
        self._ports: list[Ports] = []
        self._consumers: list[MemoryConsumer] = []

    def run(self) -> Outlook:
        """Simulate until the time is over and every job has ended."""
        try:
            self._set_up()
            began = self.clock.time
            while self._sent or self.clock.time < self._until:
                self.clock.time, _, act = heapq.heappop(self._agenda)
                act()
            return self._outlook(self.clock.time - began)
        finally:
            self.place.compute.close()

    def _set_up(self) -> None:
        self._services = [JobService(self.place.ports(), f"g{n}") for n in range(self.gateways)]
        for number in range(self.workers):
            self._ports.append(replace(self.place.ports(), events=self.ends))
            self._consumers.append(self.broker.consume())
            self._idle.append(number)
        begins, job = self.clock.time, itertools.count()
        mean = fmean(SIZES)
        tasks = mean + 1 + PARTITIONS + 2  # maps, a merge, folds, the query and the rejects
        rate = self.load * self.workers / (tasks * fmean(TASK_SECONDS))
        at = begins + self.chance.expovariate(rate)
        while at < begins + self.seconds:
            self._at(at, partial(self._arrive, f"j{next(job)}"))
            at += self.chance.expovariate(rate)
        self._warm, self._until = begins + _WARM * self.seconds, begins + self.seconds
        for _ in range(self.gateways):
            reconciler = Reconciler(self.place.ports())
            later = begins + self.chance.uniform(0, _PAUSE)
            self._at(later, partial(self._reconcile, reconciler))

    def _at(self, time: float, act: Callable[[], object]) -> None:
        heapq.heappush(self._agenda, (time, next(self._order), act))

    def _billed(self, who: str, act: Callable[[], object]) -> int:
        count = self.place.store.billed(act).total()
        self._bills[who] += count
        return count

    def _arrive(self, job: str) -> None:
        """A client creates its job, sends batch after batch, then the end."""
        service, size = self.chance.choice(self._services), self.chance.choice(SIZES)
        self._sent[job] = self.clock.time
        self._billed("gateway", lambda: service.create(job, job, REQUEST))
        for number in range(size):
            send = partial(service.put_batch, job, job, batch(number))
            self._at(
                self.clock.time + _SENT_SECONDS * (number + 1),
                partial(self._billed, "gateway", send),
            )

        def finish() -> None:
            self._sent[job] = self.clock.time
            self._billed("gateway", lambda: service.put_end(job, job, "t", end(size)))

        self._at(self.clock.time + _SENT_SECONDS * (size + 1), finish)

    def _wake(self) -> None:
        if self._idle:
            number = self._idle.pop(self.chance.randrange(len(self._idle)))
            self._at(self.clock.time, partial(self._take, number))

    def _take(self, number: int) -> None:
        delivery = self._consumers[number].take()
        if delivery is None:
            self._idle.append(number)
            return
        self._tasks += 1
        since = self.broker.since.pop(delivery.message, self.clock.time)
        seconds = self._duration(self._ports[number], delivery.message)
        if self._warm <= self.clock.time < self._until:
            self._waits.append(self.clock.time - since)
            self._busy_seconds += min(seconds, self._until - self.clock.time)
        self._at(self.clock.time + seconds, partial(self._carry_out, number, delivery))

    def _duration(self, ports: Ports, message: Message) -> float:
        job_run = ports.job_runs.running(message)
        if job_run is None or is_made(ports.store, job_run, message.task):
            return 3 * REQUEST_SECONDS
        return self.chance.uniform(*TASK_SECONDS)

    def _carry_out(self, number: int, delivery: Delivery) -> None:
        ports, consumer = self._ports[number], self._consumers[number]
        self._billed("worker", lambda: execute.execute_task(ports, consumer, delivery))
        self._note_end(ports, delivery.message)
        self._take(number)

    def _note_end(self, ports: Ports, message: Message) -> None:
        if message.task.kind == "finish" and ports.job_runs.running(message) is None:
            sent = self._sent.pop(message.job, None)
            if sent is not None:
                self._lasted.append(self.clock.time - sent)

    def _reconcile(self, one: Reconciler) -> None:
        count = self._billed("loops", one.round)
        seconds = count * REQUEST_SECONDS
        self._round_seconds += seconds
        self._rounds += 1
        pause = max(_PAUSE, 2 * seconds) * self.chance.uniform(0.75, 1.25)
        self._at(self.clock.time + seconds + pause, partial(self._reconcile, one))

    def _outlook(self, passed: float) -> Outlook:
        jobs = max(1, len(self._lasted))
        return Outlook(
            workers=self.workers,
            gateways=self.gateways,
            utilisation=self.load,
            busy=self._busy_seconds / (self.workers * (self._until - self._warm)),
            jobs=len(self._lasted),
            tasks=self._tasks,
            waited_mean=fmean(self._waits),
            waited_95=_percentile(self._waits),
            job_mean=fmean(self._lasted),
            job_95=_percentile(self._lasted),
            messages_per_job=self.broker.published / jobs,
            worker_requests_per_job=self._bills["worker"] / jobs,
            gateway_requests_per_job=self._bills["gateway"] / jobs,
            loop_requests_per_second=self._bills["loops"] / passed,
            round_seconds=self._round_seconds / max(1, self._rounds),
            computed_twice=self.ends.counts[TaskEnd.ADOPTED],
        )


def _percentile(values: list[float], share: float = 0.95) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
