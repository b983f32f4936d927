"""What tasks are given: hints that drop rows early, and inputs that are damaged."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.harness.one_owner import OneOwner

from caudal.broker import MemoryBroker
from caudal.broker.port import Delivery
from caudal.files.batches import cut_files
from caudal.formats import mapped, outputs
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import Message, Task
from caudal.formats.outcomes import Outcome
from caudal.jobs import execute, inputs, objects
from caudal.jobs.execute import TurnResult
from caudal.jobs.interfaces import SUSPECT_AFTER
from caudal.jobs.janitor import Janitor
from caudal.jobs.ports import Ports
from caudal.jobs.runs import JobRun, JobRuns, read_outcome
from caudal.jobs.service import JobService
from caudal.jobs.upload import Uploader, UploadRequest
from caudal.local.threads import Wakeup, WakeupClock
from caudal.model import Application, Query, Table
from caudal.store.directory import DirectoryStore
from caudal.store.memory import MemoryStore
from caudal.store.port import Store
from caudal.worker.compute import LocalCompute

KEYS = Table("keys", ("keys.csv",), ("k",), "SELECT k FROM raw", "keys.sql")
ROWS = Table("big", ("big.csv",), ("k", "v"), "SELECT k, to_integer(v) AS v FROM raw", "big.sql")
JOIN = "SELECT k, sum(v) AS s FROM big JOIN keys USING (k) GROUP BY k ORDER BY k"


@dataclass
class Place:
    """A gateway and a worker, taking turns."""

    ports: Ports
    folder: Path

    def send(self, *queries: str) -> None:
        """The small table first; each table is worked off before the next one comes."""
        named = [Query(f"q{n}", "", sql, f"q{n}.sql") for n, sql in enumerate(queries)]
        app = Application("little", "", Path(), (KEYS, ROWS), tuple(named))
        (self.folder / "keys.csv").write_text("k\na\nc\n")
        (self.folder / "big.csv").write_text("k,v\n" + "a,1\nb,2\nc,3\nd,4\n" * 5)
        batches = {
            table.name: list(cut_files(table.name, [self.folder / table.files[0]], 40))
            for table in app.tables
        }
        gateway = JobService(self.ports, "g")
        order = UploadRequest("j", Request(Text.of(app), options=Options(partitions=2)), batches)
        for _ in Uploader(OneOwner(gateway), self.ports.clock).begin(order).send():
            self.work()

    def work(self) -> None:
        consumer = self.ports.broker.consume()
        while (delivery := consumer.take()) is not None:
            execute.execute_task(self.ports, consumer, delivery)

    @property
    def job_run(self) -> JobRun:
        job_run = self.ports.job_runs.open("j")
        assert job_run is not None
        return job_run

    def outcome(self) -> Outcome | None:
        return read_outcome(self.ports.store, self.job_run.keys)

    def rows(self, query: str) -> list[dict[str, object]]:
        key = self.job_run.keys.output(Task("finish", query))
        found: list[dict[str, object]] = outputs.decode_result(self.ports.store.read(key), key)[
            1
        ].to_pylist()
        return found

    def keys_that_left_scan(self) -> set[str]:
        """Of the big table, in all its mapped objects."""
        found = set()
        for number in range(20):
            key = self.job_run.keys.mapped("big", number)
            if not objects.exists(self.ports.store, key):
                break
            reader = mapped.open_bytes(self.ports.store.read(key), key)
            for stage, index in reader.index.stages.items():
                for place in range(len(index.slices)):
                    columns = reader.slice(stage, place).to_pydict().values()
                    found |= {one for values in columns for one in values if one in {*"abcd"}}
        return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    compute = LocalCompute()
    yield Place(tools_of(MemoryStore(), compute), tmp_path)
    compute.close()


def tools_of(store: Store, compute: LocalCompute) -> Ports:
    clock = WakeupClock(Wakeup())
    return Ports(store, MemoryBroker(), compute, clock, lambda: "run", JobRuns(store))


EXPECTED = [{"k": "a", "s": 5}, {"k": "c", "s": 15}]


def test_rows_that_no_reader_keeps_do_not_leave_scan(place: Place) -> None:
    place.send(JOIN)
    assert place.rows("q0") == EXPECTED
    assert place.keys_that_left_scan() == {"a", "c"}


def test_rows_that_another_query_reads_do(place: Place) -> None:
    place.send(JOIN, "SELECT DISTINCT k FROM big ORDER BY k")
    assert place.rows("q0") == EXPECTED
    assert [row["k"] for row in place.rows("q1")] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("bound", ["_MOST_HINT_BATCHES", "_MOST_HINT_BYTES"])
def test_what_is_large_makes_no_hint(
    place: Place, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, bound, 0)
    place.send(JOIN)
    assert place.rows("q0") == EXPECTED
    assert place.keys_that_left_scan() == {"a", "b", "c", "d"}


def test_a_damaged_input_is_read_again_before_the_job_fails(place: Place) -> None:
    place.send(JOIN)
    task, keys = Task("map", "big", 1), place.job_run.keys
    store, batch = place.ports.store, keys.batch("big", 1)
    damaged = store.read(batch)[:-2] + b"9\n"
    for key in (batch, keys.outcome, keys.output(task)):
        store.delete(key)
    store.create(batch, damaged)
    for count in range(1, SUSPECT_AFTER + 2):
        ending = execute.execute_task(
            place.ports, place.ports.broker.consume(), Delivery(1, Message("j", "run", task), count)
        )
        if count <= SUSPECT_AFTER:
            assert ending is TurnResult.HANDED_BACK
            assert place.outcome() is None
    outcome = place.outcome()
    assert outcome
    assert outcome.state == "failed"
    assert "batch 1 of big is damaged" in outcome.reason


def test_the_janitor_sweeps_what_dead_writers_left(tmp_path: Path) -> None:
    compute = LocalCompute()
    store = DirectoryStore(tmp_path)
    left = tmp_path / ".caudal-tmp" / "1-dead"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half")
    Janitor(tools_of(store, compute)).round()
    assert left.exists()  # too young to be looked at
    os.utime(left, (0, 0))
    Janitor(tools_of(store, compute)).round()
    assert not left.exists()
    compute.close()
