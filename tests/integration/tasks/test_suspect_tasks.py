"""Suspects through the worker's own `handle`: real children, real crashes, real verdicts.

What crashes or waits is written to a module of its own, as a task's computation; what computes too
much is SQL. Children tell and wait through named pipes, never by the clock.
"""

import os
import select
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest
from tests.harness.one_owner import OneOwner
from tests.harness.waiting import GUARD_SECONDS

from caudal.broker import MemoryBroker
from caudal.broker.port import Delivery
from caudal.duck.sandbox import SandboxLimits
from caudal.files.batches import cut_files
from caudal.formats import job as job_format
from caudal.formats import outputs
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import REJECTS, Message, Task, job_key
from caudal.formats.outcomes import Outcome
from caudal.jobs import execute, objects
from caudal.jobs.execute import TurnResult
from caudal.jobs.interfaces import SUSPECT_AFTER
from caudal.jobs.ports import Ports
from caudal.jobs.runs import JobRuns, read_outcome
from caudal.jobs.service import JobService
from caudal.jobs.upload import Uploader, UploadRequest
from caudal.model import Application, Query, Table
from caudal.store.memory import MemoryStore
from caudal.worker.compute import LocalCompute
from caudal.worker.suspect_tasks import Suspects
from caudal.worker.suspects import SuspectLimits

ROWS = Table("t", ("t.csv",), ("k",), "SELECT k FROM raw", "t.sql")
ENDLESS = (
    "SELECT count(*) AS n FROM range(100000000) a(x), range(100000000) b(y) "
    "WHERE x * y % 7 = (SELECT length(min(k)) FROM t)"
)
# DuckDB counts this memory, but its limit is far above the suspect's.
BOMB = "SELECT list(x) AS n FROM range(200000000) r(x) WHERE x > (SELECT length(min(k)) FROM t)"
LIMITS = SuspectLimits(memory_bytes=1 << 30, cpu_seconds=60)

MODULE = """
import ctypes, os, pathlib

def segfault(arguments, folder):
    ctypes.string_at(0)

def hold(arguments, folder):
    tell, wait = (pathlib.Path(os.environ["HELD"]) / name for name in ("tell", "wait"))
    tell.write_text(str(os.getpid()))
    wait.read_bytes()
    return b"never"

def healthy(arguments, folder):
    return b"made by the child"

def full_disk(arguments, folder):
    raise OSError(28, "No space left on device")
"""


class StandingClock:
    """Time does not pass."""

    def now(self) -> float:
        return 1_000_000.0

    def elapsed(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody has a reason to wait here")


@dataclass
class Place:
    """A worker, and one job whose tables are sent."""

    ports: Ports
    run: str

    def deliver(self, task: Task, count: int = SUSPECT_AFTER + 1) -> TurnResult:
        """The task comes for the `count`-th time."""
        consumer = self.ports.broker.consume()
        message = Message("j", self.run, task)
        return execute.execute_task(self.ports, consumer, Delivery(1, message, count))

    def until_ready(self, task: Task) -> None:
        """Do what comes before this task, as any healthy worker does."""
        consumer = self.ports.broker.consume()
        while (delivery := consumer.take()) is not None:
            if delivery.message.task != task:
                assert (
                    execute.execute_task(self.ports, consumer, delivery) is TurnResult.ACKNOWLEDGED
                )

    def outcome(self) -> Outcome | None:
        job_run = self.ports.job_runs.open("j")
        assert job_run is not None
        return read_outcome(self.ports.store, job_run.keys)

    def made(self, task: Task) -> bool:
        job_run = self.ports.job_runs.open("j")
        return job_run is not None and objects.exists(self.ports.store, job_run.keys.output(task))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    """Makes a place for one query over a table of two batches."""
    opened: list[LocalCompute] = []

    def make(
        sql: str, suspects: Suspects, limits: SandboxLimits | None = None, more: str = ""
    ) -> Place:
        data = tmp_path / "t.csv"
        data.write_text("k\n" + "one\n" * 20 + more)
        query = Query("q", "", sql, "q.sql")
        app = Application("little", "", Path(), (ROWS,), (query,))
        options = Options(batch_bytes=60, partitions=1)
        store, compute = MemoryStore(), LocalCompute(limits, suspects, confirms=True)
        opened.append(compute)
        clock = StandingClock()
        ports = Ports(store, MemoryBroker(), compute, clock, lambda: "run", JobRuns(store))
        batches = {"t": list(cut_files("t", [data], options.batch_bytes))}
        request = Request(Text.of(app), options=options)
        order = UploadRequest("j", request, batches)
        return Place(ports, Uploader(OneOwner(JobService(ports, "g")), clock).send(order))

    yield make
    for one in opened:
        one.close()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Computations that misbehave, importable by children too."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "suspect_steps.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("HELD", str(tmp_path))
    made = types.ModuleType("suspect_steps")
    exec(compile(MODULE, "suspect_steps.py", "exec"), made.__dict__)
    monkeypatch.setitem(sys.modules, "suspect_steps", made)
    return made


MAP, FINISH = Task("map", "t", 0), Task("finish", "q")


def test_a_task_that_crashes_its_process_fails_the_job(
    place: Callable[..., Place], module: types.ModuleType
) -> None:
    here = place("SELECT k FROM t", Suspects(LIMITS, compute=module.segfault))
    assert here.deliver(MAP) is TurnResult.ACKNOWLEDGED
    outcome = here.outcome()
    assert outcome
    assert outcome.state == "failed"
    assert outcome.reason == "map t 0: the task crashes its process (SIGSEGV)"
    assert not here.made(MAP)


def test_a_query_that_takes_too_much_memory_fails_and_not_its_job(
    place: Callable[..., Place],
) -> None:
    here = place(BOMB, Suspects(replace(LIMITS, memory_bytes=300 << 20)))
    here.until_ready(FINISH)
    assert here.deliver(FINISH) is TurnResult.ACKNOWLEDGED
    outcome = here.outcome()
    assert outcome
    assert outcome.state == "done"
    why = "q.sql: finish q 0: the task needs more than 300 MiB of memory"
    assert outcome.failed == {"q": why}


def test_a_report_that_is_suspect_is_that_of_a_worker(place: Callable[..., Place]) -> None:
    here, report = place("SELECT k FROM t", Suspects(LIMITS), more="a,b\n"), Task("finish", REJECTS)
    here.until_ready(report)
    assert here.deliver(report) is TurnResult.ACKNOWLEDGED
    job_run = here.ports.job_runs.open("j")
    assert job_run is not None
    index, rows = outputs.decode_result(here.ports.store.read(job_run.keys.output(report)), "k")
    (first,) = rows.column("first").to_pylist()
    assert [(one["file"].rpartition("/")[2], one["line"]) for one in first] == [("t.csv", 22)]
    assert index.records == (outputs.PlaceRecord(0, 0, "a,b"),)


def test_too_much_memory_here_is_confirmed_in_a_fresh_process(
    place: Callable[..., Place], module: types.ModuleType
) -> None:
    """This process may hold too much itself: what the child says counts."""
    small = SandboxLimits(memory_bytes=32 << 20)
    here = place(BOMB, Suspects(LIMITS, compute=module.healthy), small)
    here.until_ready(FINISH)
    assert here.deliver(FINISH, count=1) is TurnResult.ACKNOWLEDGED
    job_run = here.ports.job_runs.open("j")
    assert job_run is not None
    assert here.ports.store.read(job_run.keys.output(FINISH)) == b"made by the child"

    here = place(BOMB, Suspects(LIMITS), small)
    here.until_ready(FINISH)
    assert here.deliver(FINISH, count=1) is TurnResult.ACKNOWLEDGED
    outcome = here.outcome()
    assert outcome
    assert outcome.state == "done"
    assert outcome.failed == {"q": "q.sql: the query needs more than 32 MiB of memory"}


def test_want_of_memory_in_a_scan_is_confirmed_and_fails_its_query(
    place: Callable[..., Place],
) -> None:
    sql = "SELECT k, list_sort(range(10000000 + length(k))) AS n FROM t"
    here = place(sql, Suspects(LIMITS), SandboxLimits(memory_bytes=32 << 20))
    assert here.deliver(MAP, count=1) is TurnResult.ACKNOWLEDGED
    job_run = here.ports.job_runs.open("j")
    assert job_run is not None
    index = objects.mapped_reader(here.ports.store, job_run.keys, "t", 0).index
    assert list(index.failed.values()) == ["q.sql: the query needs more than 32 MiB of memory"]
    assert here.outcome() is None


def test_memory_that_duckdb_does_not_count_fails_the_query_of_a_scan(
    place: Callable[..., Place],
) -> None:
    """The child ends the scan before its parent ends the child."""
    here = place("SELECT k, repeat(k, 20000000) AS n FROM t", Suspects(LIMITS))
    assert here.deliver(MAP) is TurnResult.ACKNOWLEDGED
    assert here.outcome() is None
    job_run = here.ports.job_runs.open("j")
    assert job_run is not None
    index = objects.mapped_reader(here.ports.store, job_run.keys, "t", 0).index
    assert "q.sql: the query needs more than" in "".join(index.failed.values())


def test_an_endless_computation_fails_its_query(place: Callable[..., Place]) -> None:
    here = place(ENDLESS, Suspects(replace(LIMITS, cpu_seconds=2)))
    here.until_ready(FINISH)
    assert here.deliver(FINISH) is TurnResult.ACKNOWLEDGED
    outcome = here.outcome()
    assert outcome
    why = "q.sql: finish q 0: the task needs more than 2 s of CPU time"
    assert (outcome.state, outcome.failed) == ("done", {"q": why})


def test_a_child_killed_from_outside_proves_nothing(
    place: Callable[..., Place], module: types.ModuleType, tmp_path: Path
) -> None:
    here = place("SELECT k FROM t", Suspects(LIMITS, compute=module.hold))
    with ThreadPoolExecutor(1) as pool, held_child(tmp_path) as pid:
        ending = pool.submit(here.deliver, MAP)
        os.kill(pid(), signal.SIGKILL)
        assert ending.result() is TurnResult.HANDED_BACK
    assert here.outcome() is None
    assert not here.made(MAP)


def test_only_one_suspect_at_a_time(
    place: Callable[..., Place], module: types.ModuleType, tmp_path: Path
) -> None:
    stop = threading.Event()
    here = place("SELECT k FROM t", Suspects(LIMITS, stop=stop, compute=module.hold))
    with ThreadPoolExecutor(1) as pool, held_child(tmp_path) as pid:
        first = pool.submit(here.deliver, MAP)
        assert pid()
        assert here.deliver(Task("map", "t", 1)) is TurnResult.HANDED_BACK
        stop.set()
        assert first.result() is TurnResult.HANDED_BACK
    assert here.outcome() is None


def test_a_full_disk_is_not_the_tasks_fault(
    place: Callable[..., Place], module: types.ModuleType
) -> None:
    here = place("SELECT k FROM t", Suspects(LIMITS, compute=module.full_disk))
    assert here.deliver(MAP) is TurnResult.HANDED_BACK
    assert here.outcome() is None


def test_a_model_that_is_missing_here_is_not_the_tasks_fault(place: Callable[..., Place]) -> None:
    here = place("SELECT k FROM t", Suspects(LIMITS))
    job = job_format.decode(here.ports.store.read(job_key("j")), "job.json")
    text = msgspec.structs.replace(job.request.application, sentiment="transformers:/nowhere")
    request = msgspec.structs.replace(job.request, application=text)
    here.ports.store.delete(job_key("j"))
    changed = job_format.encode(msgspec.structs.replace(job, request=request))
    here.ports.store.create(job_key("j"), changed)
    assert here.deliver(MAP) is TurnResult.HANDED_BACK
    assert here.deliver(MAP, count=1) is TurnResult.HANDED_BACK
    assert here.outcome() is None


def test_what_a_query_raises_is_its_error_in_a_child_too(place: Callable[..., Place]) -> None:
    here = place("SELECT CAST(k AS INTEGER) AS n FROM t ORDER BY n", Suspects(LIMITS))
    here.until_ready(FINISH)
    assert here.deliver(FINISH) is TurnResult.ACKNOWLEDGED
    outcome = here.outcome()
    assert outcome
    assert outcome.state == "done"
    assert "q.sql: Could not convert string 'one' to INT32" in outcome.failed["q"]


def test_a_healthy_job_whose_every_task_was_redelivered_twenty_times(
    place: Callable[..., Place],
) -> None:
    here = place("SELECT k, count(*) AS n FROM t GROUP BY k", Suspects(LIMITS))
    consumer = here.ports.broker.consume()
    while (delivery := consumer.take()) is not None:
        assert execute.execute_task(here.ports, consumer, replace(delivery, count=20)) is (
            TurnResult.ACKNOWLEDGED
        )
    outcome, job_run = here.outcome(), here.ports.job_runs.open("j")
    assert outcome
    assert outcome.state == "done"
    assert job_run is not None
    _, rows = outputs.decode_result(here.ports.store.read(job_run.keys.output(FINISH)), "q")
    assert rows.to_pylist() == [{"k": "one", "n": 20}]


class held_child:  # noqa: N801 - reads as the context manager that it is
    """The computation `hold`: it tells its pid, and then waits for ever."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Callable[[], int]:
        os.mkfifo(self._folder / "tell")
        os.mkfifo(self._folder / "wait")
        self._told = os.open(self._folder / "tell", os.O_RDONLY | os.O_NONBLOCK)
        return self._pid

    def __exit__(self, *_: object) -> None:
        os.close(self._told)

    def _pid(self) -> int:
        poller = select.poll()
        poller.register(self._told, select.POLLIN)
        assert poller.poll(1000 * GUARD_SECONDS), "the computation did not begin"
        return int(os.read(self._told, 100))
