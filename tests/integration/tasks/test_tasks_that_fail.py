"""Tasks that fail as nobody foresaw, name nothing, or belong to a job that ended: all of them end.

Through the worker's own `handle`, with real children.
"""

import contextlib
import importlib
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

from caudal.broker import MemoryBroker
from caudal.broker.port import Delivery
from caudal.duck import steps
from caudal.formats import batch as batch_format
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import Lane, Message, Task
from caudal.formats.outcomes import End, Outcome, digest_of_digests
from caudal.jobs import execute
from caudal.jobs.execute import TurnResult
from caudal.jobs.interfaces import SUSPECT_AFTER
from caudal.jobs.ports import Bounds, Ports
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.runs import JobRuns, end_run, read_outcome
from caudal.jobs.service import JobService
from caudal.model import Query, Table
from caudal.store.memory import MemoryStore
from caudal.worker.compute import LocalCompute
from caudal.worker.suspect_tasks import Suspects

ENDLESS = (
    "SELECT count(*) AS n FROM range(100000000) a(x), range(100000000) b(y) "
    "WHERE x * y % 7 = (SELECT length(min(k)) FROM t)"
)
MAP, FINISH = Task("map", "t", 0), Task("finish", "q")
SOON = Bounds(look_seconds=0.0, mark_seconds=0.0, slice_seconds=0.0)  # time stands still here


@dataclass
class Clock:
    """Time that is told."""

    at: float = 1_000.0

    def now(self) -> float:
        return self.at

    def elapsed(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody has a reason to wait here")


@dataclass
class Place:
    """A gateway and a worker, one job of one query over one table."""

    ports: Ports

    def create(self, sql: str = "SELECT k FROM t", job: str = "j", owner: str = "me") -> str:
        table = Table("t", ("t.csv",), ("k",), "SELECT k FROM raw", "t.sql")
        text = Text("little", "", (table,), (Query("q", "", sql, "q.sql"),))
        request = Request(text, options=Options(partitions=1))
        return JobService(self.ports, "g").create(job, owner, request).run

    def send(self, data: bytes, records: str = "csv", job: str = "j", owner: str = "me") -> None:
        whole = batch_format.encode(
            table="t", number=0, file="t.csv", columns=("k",), first_line=2, offset=0,
            newlines=data.count(b"\n"), data=data, records=records,
        )  # fmt: skip
        JobService(self.ports, "g").put_batch(job, owner, whole)

    def deliver(self, task: Task, run: str, count: int = 1, job: str = "j") -> TurnResult:
        delivery = Delivery(1, Message(job, run, task), count)
        return execute.execute_task(self.ports, self.ports.broker.consume(), delivery)

    def outcome(self, job: str = "j") -> Outcome | None:
        job_run = self.ports.job_runs.open(job)
        assert job_run is not None
        return read_outcome(self.ports.store, job_run.keys)


@pytest.fixture
def place() -> Iterator[Place]:
    store, compute = MemoryStore(), LocalCompute(confirms=True)
    ids = iter(f"id{number}" for number in range(1_000_000))
    ports = Ports(store, MemoryBroker(), compute, Clock(), lambda: next(ids), JobRuns(store), SOON)
    yield Place(ports)
    compute.close()


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING)
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    "data",
    [
        b"this is no Arrow stream",
        b"\xff\xff\xff\xff\xf0\xff\xff\xff" + b"x" * 100,  # Arrow calls this an OSError
        b"\xff\xff\xff\xff\x08\x00\x00\x00" + b"\x00" * 8,
        b"\x00" * 64,
        b"\xfe\xff\xff\xff" * 20,
    ],
)
def test_a_batch_that_cannot_be_decoded_fails_its_job_at_once(place: Place, data: bytes) -> None:
    run = place.create()
    place.send(data, records="arrow")
    assert place.deliver(MAP, run) is TurnResult.ACKNOWLEDGED
    outcome = place.outcome()
    assert outcome
    assert outcome.state == "failed"
    assert "batch 0 of t" in outcome.reason


@pytest.mark.parametrize("error", [KeyError("odd"), ZeroDivisionError(), pa.ArrowMemoryError("x")])
def test_an_error_that_a_child_does_not_meet_is_forgotten(
    place: Place, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """It was this process's own: the child, which shares nothing with it, makes the output."""

    def broken(*_: object) -> None:
        raise error

    run = place.create()
    place.send(b"one\n")
    monkeypatch.setattr(steps, "map_rows", broken)
    assert place.deliver(MAP, run) is TurnResult.ACKNOWLEDGED
    assert place.outcome() is None
    job_run = place.ports.job_runs.open("j")
    assert job_run is not None
    assert place.ports.store.read(job_run.keys.output(MAP))


def test_an_error_that_a_child_repeats_fails_the_job(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "def broken(*_):\n    raise LookupError('nobody foresaw this')\n"
    (tmp_path / "poison_steps.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    broken = importlib.import_module("poison_steps").broken
    suspects = Suspects(compute=broken)
    with contextlib.closing(LocalCompute(suspects=suspects, confirms=True)) as compute:
        here = Place(replace(place.ports, compute=compute))
        run = here.create()
        here.send(b"one\n")
        monkeypatch.setattr(steps, "map_rows", broken)
        assert here.deliver(MAP, run) is TurnResult.ACKNOWLEDGED
    outcome = place.outcome()
    assert outcome
    assert outcome.state == "failed"
    assert "LookupError: nobody foresaw this" in outcome.reason


def test_what_nobody_foresaw_around_a_task_fails_it_after_some_deliveries(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise LookupError("while gathering")

    run = place.create()
    place.send(b"one\n")
    monkeypatch.setattr(execute, "gather", broken)
    for count in range(1, SUSPECT_AFTER + 1):
        assert place.deliver(MAP, run, count) is TurnResult.HANDED_BACK
        assert place.outcome() is None
    assert place.deliver(MAP, run, SUSPECT_AFTER + 1) is TurnResult.ACKNOWLEDGED
    outcome = place.outcome()
    assert outcome
    assert outcome.reason == "map t 0: LookupError('while gathering')"


@pytest.mark.parametrize(
    "task", [Task("map", "other"), Task("fold", "q"), Task("finish", "t"), Task("fold", "fold1", 9)]
)
def test_a_message_that_names_no_task_of_its_job_is_dropped(
    place: Place, task: Task, told: Callable[[], list[str]]
) -> None:
    run = place.create()
    assert place.deliver(task, run) is TurnResult.ACKNOWLEDGED
    assert place.outcome() is None
    assert told() == ["a message names no task of its job: dropped"]


def test_a_message_whose_input_stays_missing_is_dropped(
    place: Place, told: Callable[[], list[str]]
) -> None:
    run = place.create()
    task = Task("map", "t", 77)
    for count in range(1, SUSPECT_AFTER + 1):
        assert place.deliver(task, run, count) is TurnResult.HANDED_BACK
    assert place.deliver(task, run, SUSPECT_AFTER + 1) is TurnResult.ACKNOWLEDGED
    assert place.outcome() is None
    assert told() == ["a task's input stays missing: dropped"]


def endless(place: Place, job: str = "j", owner: str = "me") -> str:
    """A job whose finish computes for ever, and is ready."""
    run = place.create(ENDLESS, job, owner)
    place.send(b"one\n", job=job, owner=owner)
    gateway, job_run = JobService(place.ports, "g"), place.ports.job_runs.open(job)
    assert job_run is not None
    index = batch_format.describe(
        lambda *at: place.ports.store.read(job_run.keys.batch("t", 0), *at), ""
    )
    gateway.put_end(job, owner, "t", end_of(index))
    consumer = place.ports.broker.consume()
    while (delivery := consumer.take()) is not None:
        if delivery.message.task != FINISH:
            execute.execute_task(place.ports, consumer, delivery)
    return run


def end_of(index: batch_format.BatchHeader) -> End:
    return End(1, index.bytes, digest_of_digests([index.digest]))


@pytest.mark.parametrize("count", [1, SUSPECT_AFTER + 1], ids=["here", "in a child"])
def test_a_task_is_stopped_when_its_job_has_ended(place: Place, count: int) -> None:
    run = endless(place)
    job_run = place.ports.job_runs.open("j")
    assert job_run is not None
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(place.deliver, FINISH, run, count)
        end_run(place.ports.store, place.ports.clock, job_run.keys, "cancelled", "on purpose")
        assert ending.result() is TurnResult.ACKNOWLEDGED
    outcome = place.outcome()
    assert outcome
    assert outcome.state == "cancelled"


def test_a_long_task_makes_way_if_its_job_is_crowded(place: Place) -> None:
    run = endless(place)
    job_run = place.ports.job_runs.open("j")
    assert job_run is not None
    place.ports.broker.publish([Message("other", "r", MAP)])
    place.ports.store.create(job_run.keys.crowded, b"crowded")
    assert place.deliver(FINISH, run) is TurnResult.ACKNOWLEDGED
    assert place.ports.broker.depths()[Lane.SLOW] == 1
    assert place.outcome() is None
    assert place.ports.store.list(job_run.keys.running()).entries == ()


def test_what_somebody_computes_is_not_published_again(place: Place) -> None:
    run = endless(place)
    job_run, clock = place.ports.job_runs.open("j"), place.ports.clock
    assert job_run is not None
    assert isinstance(clock, Clock)
    reconciler, waiting = Reconciler(place.ports), place.ports.broker.depths
    before = waiting()[Lane.FINISH]
    for beat in range(40):
        place.ports.store.create(f"{job_run.keys.running(FINISH)}{beat:06}-w", b"running")
        place.ports.store.delete(f"{job_run.keys.running(FINISH)}{beat - 1:06}-w")
        reconciler.round()
        clock.at += 4.0
    assert waiting()[Lane.FINISH] == before
    for _ in range(10):  # its worker is dead: the mark stays as it is
        clock.at += 4.0
        reconciler.round()
    assert waiting()[Lane.FINISH] == before + 1
    assert run


def test_what_a_crowded_job_lacks_is_published_into_the_slow_lane(place: Place) -> None:
    endless(place)
    job_run, clock = place.ports.job_runs.open("j"), place.ports.clock
    assert job_run is not None
    assert isinstance(clock, Clock)
    place.create(job="theirs", owner="another")
    mark = f"{job_run.keys.running(FINISH)}000001-w"
    place.ports.store.create(mark, b"running")
    reconciler, waiting = Reconciler(place.ports), place.ports.broker.depths
    for _ in range(3):
        reconciler.round()
    place.ports.store.delete(mark)
    before = waiting()[Lane.FINISH]
    for _ in range(40):
        clock.at += 2.0
        reconciler.round()
    assert waiting()[Lane.FINISH] == before
    assert 1 <= waiting()[Lane.SLOW] <= 4


def test_a_job_is_told_that_it_is_crowded_only_beside_another_owner(place: Place) -> None:
    endless(place)
    job_run = place.ports.job_runs.open("j")
    assert job_run is not None
    place.ports.store.create(f"{job_run.keys.running(FINISH)}000001-w", b"running")
    place.create(job="mine")
    reconciler = Reconciler(place.ports)
    for _ in range(3):
        reconciler.round()
    assert not place.ports.store.list(job_run.keys.crowded).entries
    place.create(job="theirs", owner="another")
    for _ in range(3):
        reconciler.round()
    assert place.ports.store.read(job_run.keys.crowded)


@pytest.mark.parametrize("rounds", [0, 1])
def test_jobs_that_have_ended_do_not_count_however_many_there_were(
    place: Place, rounds: int
) -> None:
    """They end between two rounds of the reconciler, or after the last round saw them run."""
    reconciler = Reconciler(place.ports)
    for number in range(20):
        place.create("SELECT 1 AS one", job=f"j{number}")
        for _ in range(rounds):
            reconciler.round()
        job_run = place.ports.job_runs.open(f"j{number}")
        assert job_run is not None
        assert job_run.message(MAP).lane is Lane.FIRST
        end_run(place.ports.store, place.ports.clock, job_run.keys, "cancelled", "enough")


def test_the_fifth_job_of_an_owner_waits_behind_those_of_others(place: Place) -> None:
    lanes = []
    for number in range(6):
        place.create("SELECT 1 AS one", job=f"j{number}")
        job_run = place.ports.job_runs.open(f"j{number}")
        assert job_run is not None
        lanes.append(job_run.message(MAP).lane)
    assert lanes == [Lane.FIRST] * 4 + [Lane.SLOW] * 2
    place.create(job="another", owner="you")
    job_run = place.ports.job_runs.open("another")
    assert job_run is not None
    assert job_run.message(MAP).lane is Lane.FIRST
