"""Gateway, worker, reconciler and janitor over a dataset, in one process without threads."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from caudal.broker import MemoryBroker
from caudal.broker.port import Delivery
from caudal.datasets.cluster_place import ClusterDataset, locate
from caudal.formats import outputs
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import Task
from caudal.formats.outcomes import Outcome
from caudal.formats.replies import AskReceipt, Question
from caudal.jobs import execute
from caudal.jobs.asking import DatasetQuestions
from caudal.jobs.events import TaskEnd, TaskReport
from caudal.jobs.janitor import Janitor
from caudal.jobs.ports import Bounds, Ports
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.runs import JobRuns, read_outcome
from caudal.jobs.service import JobService
from caudal.model import Application
from caudal.store.memory import MemoryStore
from caudal.store.port import Store, entries
from caudal.worker.compute import LocalCompute
from tests.harness.hand_clock import HandClock
from tests.harness.shelves import load_files, sales_app, sales_loader, write_sales

DAY = 86_400.0


@dataclass
class Counted:
    """Counts the tasks that were computed, by kind."""

    made: Counter[str] = field(default_factory=Counter)

    def began(self, delivery: Delivery) -> None: ...

    def ended(self, report: TaskReport) -> None:
        if report.end in (TaskEnd.DONE, TaskEnd.ADOPTED):
            self.made[report.delivery.message.task.kind] += 1


@dataclass
class AskingPlace:
    """Everything in one process. `work` runs tasks until none waits."""

    store: Store = field(default_factory=MemoryStore)
    broker: MemoryBroker = field(default_factory=MemoryBroker)
    clock: HandClock = field(default_factory=lambda: HandClock(100 * DAY))
    counted: Counted = field(default_factory=Counted)

    def __post_init__(self) -> None:
        ids = itertools.count()
        self.ports = Ports(
            store=self.store,
            broker=self.broker,
            compute=LocalCompute(),
            clock=self.clock,
            new_id=lambda: f"run{next(ids)}",
            job_runs=JobRuns(self.store),
            bounds=Bounds(sweep_seconds=0.0),
            events=self.counted,
        )
        self.jobs = JobService(self.ports, "g1")
        self.questions = DatasetQuestions(self.jobs, self.ports)
        self.consumer = self.broker.consume()
        self.reconciler, self.janitor = Reconciler(self.ports), Janitor(self.ports)

    def dataset(self, owner: str = "ana", name: str = "shelf") -> ClusterDataset:
        return locate(self.store, owner, name)

    def load_sales(self, folder: Path, name: str, numbers: Sequence[int]) -> int | None:
        """Load a file of sales into ana's shelf; return the version."""
        write_sales(folder, name, numbers)
        with sales_loader(self.dataset().below) as loader:
            return load_files(loader, folder, sales=[str(folder / name)]).version

    def ask(
        self,
        app: Application | None = None,
        *,
        who: str = "ana",
        name: str = "shelf",
        version: int | None = None,
        options: Options | None = None,
        once: str = "",
    ) -> AskReceipt:
        text = Text.of(app or sales_app())
        request = Request(text, options=options or Options(partitions=2))
        question = Question(request, version, once)
        return self.questions.ask(who, self.questions.place(who, name, question))

    def work(self) -> Counter[str]:
        """Run tasks until nothing waits; return how many of each kind were computed."""
        self.counted.made.clear()
        while execute.take_turn(self.ports, self.consumer) is not execute.TurnResult.IDLE:
            pass
        return Counter(self.counted.made)

    def take(self, kind: str) -> Task:
        """Run tasks until one of this kind was; return it."""
        while True:
            delivery = self.consumer.take()
            assert delivery is not None, f"no {kind} waits"
            execute.execute_task(self.ports, self.consumer, delivery)
            if delivery.message.task.kind == kind:
                return delivery.message.task

    def reconcile(self) -> None:
        """Let enough time pass for what is missing to be published again."""
        for _ in range(3):
            self.reconciler.round()
            self.clock.time += 11.0

    def rows(self, receipt: AskReceipt, query: str = "total", who: str = "ana") -> pa.Table:
        found = self.jobs.result(receipt.job, who, query, receipt.run)
        return outputs.decode_result(found, query)[1]

    def outcome(self, receipt: AskReceipt) -> Outcome | None:
        job_run = self.ports.job_runs.open(receipt.job)
        assert job_run is not None
        return read_outcome(self.store, job_run.keys)

    def shared(self) -> list[str]:
        """Return the keys of the shared outputs of ana's shelf."""
        return [one.key for one in entries(self.store, f"{self.dataset().root}mapped/")]

    def with_compute(self, compute: LocalCompute) -> None:
        """Replace the engine of gateway and worker."""
        self.ports = replace(self.ports, compute=compute)
        self.jobs = JobService(self.ports, "g1")
        self.questions = DatasetQuestions(self.jobs, self.ports)

    def with_versions(self, versions: Mapping[str, str]) -> None:
        """Let gateway and worker say that they are of these versions."""
        self.with_compute(VersionedCompute(versions))


class VersionedCompute(LocalCompute):
    """An engine that says that it is of other versions."""

    def __init__(self, versions: Mapping[str, str]) -> None:
        super().__init__()
        self._versions = versions

    @property
    def versions(self) -> Mapping[str, str]:
        return self._versions
