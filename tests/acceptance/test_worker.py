"""Real workers on a real RabbitMQ and a real directory, killed and frozen for real."""

import socket
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from caudal.application import find_application
from caudal.broker.open_broker import open_broker
from caudal.broker.port import BrokerError, Delivery, OpenedBroker
from caudal.embedded.engine import run as run_embedded
from caudal.files.batches import cut_files
from caudal.files.sources import Sources
from caudal.formats import outputs
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import REJECTS, Lane
from caudal.formats.replies import JobStatus
from caudal.jobs.ports import Ports
from caudal.jobs.runs import JobRuns
from caudal.jobs.service import JobService
from caudal.jobs.upload import Uploader, UploadRequest
from caudal.model import Query
from caudal.process.clock import SystemClock, new_id
from caudal.store import DirectoryStore
from caudal.worker.compute import LocalCompute
from tests.harness.one_owner import OneOwner
from tests.harness.rabbit import PASSWORD
from tests.harness.rabbit import rabbit as rabbit
from tests.harness.rabbit import rabbit_url as rabbit_url
from tests.harness.waiting import until
from tests.harness.worker_processes import WorkerProcess, starting, working

BOOKS = find_application("books")
CASE = sorted((BOOKS.folder / "cases").iterdir())[0]

# One CPU-bound SELECT without a table: a finish task that can run as soon as its job exists.
_COUNT = (
    "SELECT count(*) FILTER (hash(a.range * b.range) % 7 = 0) AS n FROM range({}) a, range({}) b"
)
SHORT, LONG, ENDLESS = (10, 10), (20_000, 16_000), (10_000_000, 10_000_000)


@dataclass
class Place:
    """A store, a broker, and a gateway's functions in this process; workers are processes."""

    folder: Path
    url: str
    broker: OpenedBroker = field(init=False)

    def __post_init__(self) -> None:
        self.broker = open_broker(self.url)
        self.store = DirectoryStore(self.folder / "store", fsync=False)
        self.clock = SystemClock()
        self.compute = LocalCompute()
        self.gateway = JobService(
            Ports(
                store=self.store,
                broker=self.broker,
                compute=self.compute,
                clock=self.clock,
                new_id=new_id,
                job_runs=JobRuns(self.store),
            ),
            "g",
        )

    def close(self) -> None:
        self.compute.close()
        self.broker.close()

    def ask(self, job: str, size: tuple[int, int]) -> None:
        """A job with one query; its finish task is all that waits, delivered to nobody yet."""
        query = Query("q", "", _COUNT.format(*size), "queries/q.sql")
        self.gateway.create(job, "me", Request(Text("counting", "", (), (query,))))
        consumer = self.broker.consume([Lane.FINISH])
        for delivery in [until(consumer.take) for _ in range(2)]:
            if delivery.message.task.name == "q":
                self.broker.publish([delivery.message])
            consumer.acknowledge(delivery)
        consumer.close()

    def status(self, job: str) -> JobStatus:
        return self.gateway.status(job, "me")

    def has_result(self, job: str) -> bool:
        return "q" in self.status(job).results

    def taken(self) -> bool:
        """Nothing waits any longer."""
        return self.broker.depths()[Lane.FINISH] == 0

    def deliver(self) -> Delivery:
        """The next task, to this process."""
        return until(self.broker.consume([Lane.FINISH]).take, BrokerError)

    def working(self) -> AbstractContextManager[WorkerProcess]:
        return working(self.folder, str(self.folder / "store"), self.url)


@pytest.fixture
def place(tmp_path: Path, rabbit_url: str) -> Iterator[Place]:
    made = Place(tmp_path, rabbit_url)
    yield made
    made.close()


def test_two_workers_give_the_rows_of_the_embedded_engine(place: Place) -> None:
    options = Options(batch_bytes=300, partitions=3, group=4)
    sources = Sources(CASE)
    batches = {
        table.name: list(cut_files(table.name, sources.files(table), options.batch_bytes))
        for table in BOOKS.tables
    }
    order = UploadRequest("j", Request(Text.of(BOOKS), options=options), batches)
    store = str(place.folder / "store")
    with (
        working(place.folder, store, place.url, "--name", "a", "--metrics-port", "0") as one,
        working(place.folder, store, place.url, "--name", "b", "--tasks", "fold,finish") as other,
    ):
        outcome, results = Uploader(OneOwner(place.gateway), place.clock).run(order)
        ready = one.wait_for("ready")
        with urllib.request.urlopen(f"http://127.0.0.1:{ready['metrics_port']}/metrics") as answer:
            figures = answer.read().decode()
        assert [one.terminate(), other.terminate()] == [0, 0]
    assert outcome.state == "done"
    expected = run_embedded(BOOKS, sources)
    assert set(results) == {*expected, REJECTS}
    for name, answer in expected.items():
        assert outputs.decode_result(results[name], name)[1].equals(answer.table), name
    mapped = one.lines("task done")[0]
    assert {"job", "run", "task", "seconds", "deliveries", "bytes_in", "bytes_out"} <= set(mapped)
    kinds = {line["task"] for line in other.lines("task done")}
    assert kinds <= {"fold", "finish"}
    batch = next(line for line in one.lines("task done") if line["task"] == "map")
    assert {"table", "batch"} <= set(batch)
    assert 'caudal_worker_tasks_total{ending="done",kind="map"}' in figures
    assert "caudal_broker_connected 1.0" in figures
    assert PASSWORD not in one.text() + other.text()


def test_a_killed_workers_task_goes_to_another(place: Place) -> None:
    place.ask("j", ENDLESS)
    with place.working() as worker:
        until(place.taken)
        worker.kill()
        assert place.deliver().count == 2
    assert place.status("j").outcome is None


def test_a_frozen_workers_task_goes_to_another_and_it_comes_back(place: Place) -> None:
    place.ask("j", ENDLESS)
    with place.working() as worker:
        until(place.taken)
        worker.freeze()
        assert place.deliver().count == 2
        worker.thaw()
        assert worker.terminate() == 0
    assert place.status("j").outcome is None


def test_a_thawed_worker_goes_on(place: Place) -> None:
    with place.working() as worker:
        worker.freeze()
        place.ask("j", SHORT)
        worker.thaw()
        until(lambda: place.has_result("j"))


def test_sigterm_in_the_midst_of_a_task_loses_nothing(place: Place) -> None:
    place.ask("j", ENDLESS)
    with place.working() as worker:
        until(place.taken)
        assert worker.terminate() == 0
        assert len(worker.lines("task handed back")) == 1
    assert place.deliver().count == 2
    assert place.status("j").outcome is None


def test_a_long_computation_keeps_its_connection(place: Place) -> None:
    place.ask("j", LONG)
    with place.working() as worker:
        until(lambda: place.has_result("j"))
        line = worker.wait_for("task done")
        assert (line["query"], line["deliveries"]) == ("q", 1)
        assert worker.lines("RabbitMQ is away") == []


@pytest.mark.parametrize(
    ("broken", "status", "said"),
    [("broker", 12, "RabbitMQ is away: 127.0.0.1"), ("store", 8, "store")],
)
def test_what_is_away_at_the_start_is_named(
    place: Place, broken: str, status: int, said: str
) -> None:
    store, url = str(place.folder / "store"), place.url
    if broken == "broker":
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            url = f"amqp://me:hidden@127.0.0.1:{nobody.getsockname()[1]}/"
    else:
        (place.folder / "file").write_text("in the way")
        store = str(place.folder / "file" / "store")
    with starting(place.folder, store, url, "--wait", "0") as worker:
        assert worker.process.wait() == status
        text = worker.output.read_text()
    assert said in text.splitlines()[-1]
    assert "hidden" not in text
