"""A worker of a load dies at every store operation; others come between those of the commit.

Afterwards every row is there once, every version names only files that are there, and every Delta
log agrees with its version.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.harness.cluster_loads import cluster_order, shelf_of, stored_rows
from tests.harness.hand_clock import HandClock
from tests.harness.misbehaving_stores import Around, DiedError, Dying, Moment, Recording, Result
from tests.harness.shelves import write_sales, write_shops

from caudal.broker import MemoryBroker
from caudal.client.load import ClusterLoad
from caudal.datasets import keys
from caudal.datasets.commits import read_version
from caudal.datasets.delta import delta_commit
from caudal.datasets.files import read_file
from caudal.datasets.vacuum import vacuum
from caudal.errors import DataError
from caudal.formats import batch as batch_format
from caudal.formats.job import Job, Options, Request
from caudal.formats.keys import Message, Task
from caudal.formats.loads import LOAD
from caudal.formats.outcomes import End, digest_of_digests
from caudal.jobs.dataset_service import DatasetService
from caudal.jobs.execute import execute_task
from caudal.jobs.interfaces import Inputs, MayGoOn, Planned, go_on
from caudal.jobs.loads import VACUUMED, commit_load
from caudal.jobs.ports import Ports
from caudal.jobs.runs import JobRun, JobRuns, read_outcome
from caudal.jobs.service import JobService
from caudal.store import MemoryStore
from caudal.store.port import Store, entries
from caudal.worker.compute import LocalCompute

OWNER = "local"


@dataclass
class Remembering:
    """The engine; what it computed once it knows. Its outputs depend on nothing else."""

    local: LocalCompute = field(default_factory=LocalCompute)
    known: dict[tuple[str, Task], bytes] = field(default_factory=dict)

    @property
    def versions(self) -> Mapping[str, str]:
        return self.local.versions

    def plan(self, request: Request, moment: float) -> Planned:
        return self.local.plan(request, moment)

    def run(
        self, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn = go_on
    ) -> bytes:
        if (job.run, task) not in self.known:
            self.known[job.run, task] = self.local.run(job, task, inputs, deliveries, beat)
        return self.known[job.run, task]


class World:
    """One store, one engine, and jobs whose batches have arrived."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.compute = Remembering()
        self._ids = itertools.count()

    def ports(self, store: Store, broker: MemoryBroker) -> Ports:
        ids = self._ids
        return Ports(
            store=store,
            broker=broker,
            compute=self.compute,
            clock=HandClock(),
            new_id=lambda: f"run{next(ids)}",
            job_runs=JobRuns(store),
        )

    def sent(self, order: ClusterLoad) -> tuple[str, list[Message]]:
        """Offer and send all of a load; return its job, and the messages that workers get."""
        broker = MemoryBroker()
        ports = self.ports(self.store, broker)
        service, datasets = JobService(ports, "g"), DatasetService(ports)
        request = order.request(order.sources)
        job = datasets.offer(OWNER, order.dataset, request).job
        service.create(job, OWNER, request)
        tables = dict.fromkeys(one.source.table for one in order.sources)
        for table in tables:
            digests: list[str] = []
            size = 0
            for place, one in enumerate(order.sources):
                for made in (
                    one.cut(len(digests), place, False) if one.source.table == table else ()
                ):
                    data = made if isinstance(made, bytes) else made()
                    index, _ = batch_format.decode(data, "batch")
                    service.put_batch(job, OWNER, data)
                    digests.append(index.digest)
                    size += index.bytes
            service.put_end(job, OWNER, table, End(len(digests), size, digest_of_digests(digests)))
        return job, list(taken(broker))

    def work(self, store: Store, messages: list[Message]) -> None:
        """Do all tasks. Whoever dies is followed by another, with a store that works."""
        broker = MemoryBroker()
        broker.publish(messages)
        consumer = broker.consume()
        while (delivery := consumer.take()) is not None:
            try:
                execute_task(self.ports(store, broker), consumer, delivery)
            except DiedError:
                store = self.store
                consumer.hand_back(delivery)  # as the broker does when a worker is gone

    def copy(self) -> MemoryStore:
        return copied(self.store)


def copied(store: MemoryStore) -> MemoryStore:
    other = MemoryStore()
    for entry in entries(store, ""):
        other.create(entry.key, store.read(entry.key))
    return other


def taken(broker: MemoryBroker) -> Iterator[Message]:
    consumer = broker.consume()
    while (delivery := consumer.take()) is not None:
        consumer.acknowledge(delivery)
        yield delivery.message


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_shops(tmp_path)
    for number in range(3):
        write_sales(tmp_path, f"s{number}.csv", range(10 * number, 10 * number + 5))
    return tmp_path


def checked_ids(store: Store) -> list[Any]:
    """All sales in their order; checks every version on the way."""
    place = shelf_of(store)
    if not place.exists():
        return []
    contents = place.contents()
    for number in range(contents.number + 1):
        version = read_version(place.below, number)
        for table in contents.tables:
            assert place.below.read(keys.delta_key(table, number)) == delta_commit(version, table)
    for table, files in contents.tables.items():
        for file in files:
            read_file(place.below, table, file)
    return [row["id"] for row in stored_rows(place, "sales")]


def numbers(*files: int) -> list[int]:
    return [10 * file + n for file in files for n in range(5)]


def test_a_worker_dies_at_every_operation_of_a_load(folder: Path) -> None:
    world = World()
    whole = Options(batch_bytes=4096)
    job, messages = world.sent(cluster_order(folder, options=whole, sales=["s0.csv"]))
    start = world.copy()
    recording = Recording(world.store)
    world.work(recording, messages)
    assert checked_ids(world.store) == numbers(0)
    for at in range(len(recording.operations)):
        for moment in Moment:
            world.store = copied(start)
            world.work(Dying(world.store, at=at, moment=moment), messages)
            assert checked_ids(world.store) == numbers(0), (at, moment)
            assert shelf_of(world.store).contents().number == 1
            run = JobRuns(world.store).open(job)
            assert run is not None
            outcome = read_outcome(world.store, run.keys)
            assert outcome is not None
            assert outcome.state == "done"


@dataclass
class Visited(Around):
    """Lets somebody else act before one operation, counted from 0."""

    at: int = 0
    act: Callable[[], object] = field(default=lambda: None)
    done: int = 0

    def operate(self, name: str, key: str, do: Callable[[], Result]) -> Result:
        here, self.done = self.done == self.at, self.done + 1
        if here:
            self.act()
        return do()


def before_commit(world: World, order: ClusterLoad) -> JobRun:
    """Do everything of a load but its commit."""
    job, messages = world.sent(order)
    broker = MemoryBroker()
    broker.publish(messages)
    consumer = broker.consume()
    while (delivery := consumer.take()) is not None:
        if delivery.message.task == Task("finish", LOAD):
            consumer.acknowledge(delivery)
        else:
            execute_task(world.ports(world.store, broker), consumer, delivery)
    run = JobRuns(world.store).open(job)
    assert run is not None
    return run


def test_others_commit_between_the_operations_of_a_commit(folder: Path) -> None:
    """The loser of a number takes the next one; a source that the other brought is left out."""
    world = World()
    _, first = world.sent(cluster_order(folder, sales=["s0.csv"]))
    world.work(world.store, first)
    mine = before_commit(world, cluster_order(folder, sales=["s1.csv", "s2.csv"]))
    other = before_commit(world, cluster_order(folder, sales=["s2.csv"]))
    start, clock = world.copy(), HandClock()
    recording = Recording(world.store)
    commit_load(recording, clock, mine)
    for at in range(len(recording.operations)):
        store = copied(start)
        commit_load(
            Visited(store, at=at, act=partial(commit_load, store, clock, other)), clock, mine
        )
        commit_load(store, clock, other)
        assert sorted(checked_ids(store)) == numbers(0, 1, 2)
        assert shelf_of(store).contents().number in (2, 3)


def test_a_vacuum_between_the_operations_of_a_commit(folder: Path) -> None:
    """Either the vacuum spares the files, or the commit notices that they are gone."""
    world = World()
    _, first = world.sent(cluster_order(folder, sales=["s0.csv"]))
    world.work(world.store, first)
    mine = before_commit(world, cluster_order(folder, sales=["s1.csv"]))
    start, clock = world.copy(), HandClock()
    recording = Recording(world.store)
    commit_load(recording, clock, mine)
    ends = set()
    for at in range(len(recording.operations)):
        store = copied(start)

        sweep = partial(vacuum, shelf_of(store).below, 10.0**9, keep=0.0, grace=0.0)
        told = ""
        try:
            commit_load(Visited(store, at=at, act=sweep), clock, mine)
        except DataError as error:
            told = str(error)
        assert checked_ids(store) == (numbers(0) if told else numbers(0, 1))
        ends.add(told)
    assert ends == {"", VACUUMED}


def test_a_dataset_that_was_deleted_meanwhile(folder: Path) -> None:
    world = World()
    mine = before_commit(world, cluster_order(folder, sales=["s1.csv"]))
    shelf_of(world.store).delete()
    with pytest.raises(DataError, match="dataset shelf was deleted meanwhile: load again"):
        commit_load(world.store, HandClock(), mine)
    assert not shelf_of(world.store).exists()
