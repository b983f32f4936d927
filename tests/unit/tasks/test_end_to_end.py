"""A job from create to clean-up on memory adapters, one worker, no faults: the straight path."""

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.harness.hand_clock import WrongClock
from tests.harness.one_owner import OneOwner

from caudal.application import find_application
from caudal.broker import MemoryBroker
from caudal.embedded.engine import run as run_embedded
from caudal.errors import ApplicationError, UsageError
from caudal.files.batches import cut_files
from caudal.files.sources import Sources
from caudal.formats import outputs, report_records
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import REJECTS
from caudal.formats.outcomes import End
from caudal.formats.replies import Receipt
from caudal.jobs import execute
from caudal.jobs.interfaces import ConflictError, GoneError
from caudal.jobs.janitor import Janitor
from caudal.jobs.job_index import INDEX
from caudal.jobs.ports import Ports
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.runs import JobRuns
from caudal.jobs.service import JobService
from caudal.jobs.upload import Uploader, UploadRequest
from caudal.local.engines import run_with
from caudal.model import Application
from caudal.run_options import Engine, RunOptions
from caudal.store import DirectoryStore, MemoryStore, Store
from caudal.store.port import entries
from caudal.worker.compute import LocalCompute

BOOKS = find_application("books")
CASES = sorted((BOOKS.folder / "cases").iterdir())


@dataclass
class TurningClock:
    """Time passes only when somebody sleeps; then the workers get their turn."""

    time: float = 1_000_000.0
    while_asleep: Callable[[], object] = field(default=lambda: None)

    def now(self) -> float:
        return self.time

    def elapsed(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        self.while_asleep()


@dataclass
class Place:
    """Everything in one process."""

    store: Store = field(default_factory=MemoryStore)
    broker: MemoryBroker = field(default_factory=MemoryBroker)
    clock: TurningClock = field(default_factory=TurningClock)

    def __post_init__(self) -> None:
        ids = itertools.count()
        self.ports = Ports(
            store=self.store,
            broker=self.broker,
            compute=LocalCompute(),
            clock=TurningClock(),
            new_id=lambda: f"run{next(ids)}",
            job_runs=JobRuns(self.store),
        )
        self.gateway = JobService(self.ports, "g1")
        self.consumer = self.broker.consume()
        self.clock.while_asleep = self.work

    def work(self) -> None:
        """Until nothing waits."""
        while execute.take_turn(self.ports, self.consumer) is not execute.TurnResult.IDLE:
            pass

    def stored(self) -> list[str]:
        return [entry.key for entry in entries(self.store, "")]


@pytest.fixture
def place() -> Place:
    return Place()


def order_of(app: Application, folder: Path, options: Options, job_id: str = "j") -> UploadRequest:
    sources = Sources(folder)
    batches = {
        table.name: list(cut_files(table.name, sources.files(table), options.batch_bytes))
        for table in app.tables
    }
    return UploadRequest(job_id, Request(Text.of(app), options=options), batches)


def sent(order: UploadRequest) -> dict[str, list[bytes]]:
    """The batches of an order, all of which are made."""
    return {
        table: [one for one in batches if isinstance(one, bytes)]
        for table, batches in order.batches.items()
    }


SMALL = Options(batch_bytes=300, partitions=3, group=4, keep_seconds=60.0)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_same_rows_as_the_embedded_engine(case: Path, place: Place) -> None:
    outcome, results = Uploader(OneOwner(place.gateway), place.clock).run(
        order_of(BOOKS, case, SMALL)
    )
    expected = run_embedded(BOOKS, Sources(case))
    assert outcome.state == "done"
    assert set(results) == {*expected, REJECTS}
    for name, answer in expected.items():
        index, rows = outputs.decode_result(results[name], name)
        assert index.title == answer.title
        assert rows.equals(answer.table), name
    _, report = outputs.decode_result(results[REJECTS], REJECTS)
    found: dict[str, dict[str, int]] = {}
    for row in report.to_pylist():
        if row["reason"] is not None:
            found.setdefault(row["table"], {})[row["reason"]] = row["rows"]
    assert found == expected.rejects.counts()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_report_has_the_records_of_its_places(case: Path, place: Place) -> None:
    """On a cluster as of a run with a report."""
    _, results = Uploader(OneOwner(place.gateway), place.clock).run(order_of(BOOKS, case, SMALL))
    index, report = outputs.decode_result(results[REJECTS], REJECTS)
    (rows,) = report_records.with_records([report], index.records)
    found = {
        (row["table"], row["reason"], number): one["record"]
        for row in rows.to_pylist()
        for number, one in enumerate(row["first"])
    }
    for engine in (Engine.EMBEDDED, Engine.SPLIT):
        answers = run_with(engine, BOOKS, Sources(case), options=RunOptions(records=True))
        expected = {
            (one.table, one.reason, number): record
            for one in answers.rejects
            for number, record in one.records.items()
        }
        assert found == expected, engine
    for one in run_with(Engine.EMBEDDED, BOOKS, Sources(case)).rejects:
        assert one.records == {}, "records are read only for a report"


def test_clean_up_leaves_nothing(place: Place) -> None:
    Uploader(OneOwner(place.gateway), place.clock).run(order_of(BOOKS, CASES[0], SMALL))
    janitor = Janitor(place.ports)
    janitor.round()
    jobs = [key for key in place.stored() if not key.startswith(INDEX)]
    names = {key.split("/", 3)[-1].split("/")[0] for key in jobs}
    assert names == {"job.json", "results", "outcome.json", "tables"}
    place.ports.clock.sleep(61)
    for _ in range(2):
        janitor.round()
    assert place.stored() == []


def test_clean_up_leaves_not_even_folders_that_killed_writers_made(tmp_path: Path) -> None:
    place = Place(DirectoryStore(tmp_path, fsync=False))
    Uploader(OneOwner(place.gateway), place.clock).run(order_of(BOOKS, CASES[0], SMALL))
    for folder in ("jobs/j/run0/maps/books/0", "jobs/j/run0/results/late", "jobs/never/run1/x"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "jobs/nobody").mkdir()
    janitor = Janitor(place.ports)
    janitor.round()
    assert {path.name for path in (tmp_path / "jobs").iterdir()} == {"j"}
    os.utime(next(tmp_path.glob("jobs/j/*/outcome.json")), (0, 0))  # as old as by that clock
    place.ports.clock.sleep(61)
    janitor.round()
    assert not (tmp_path / "jobs").exists()


def test_everything_lost_by_the_broker_is_published_again(place: Place) -> None:
    order = order_of(BOOKS, CASES[0], SMALL)
    Uploader(OneOwner(place.gateway), place.clock).send(order)
    reconciler = Reconciler(place.ports)
    for _ in range(60):
        place.broker.wipe()
        reconciler.round()
        place.ports.clock.sleep(60)
        reconciler.round()
        execute.take_turn(place.ports, place.consumer)
        if (status := place.gateway.status("j", "me")).outcome:
            break
    assert status.outcome
    assert status.outcome.state == "done"


def test_the_same_request_is_the_same_job_and_another_a_conflict(place: Place) -> None:
    order = order_of(BOOKS, CASES[0], SMALL)
    first = place.gateway.create("j", "me", order.request)
    assert place.gateway.create("j", "me", order.request) == first
    other = Request(order.request.application, queries=("q1",), options=SMALL)
    with pytest.raises(ConflictError, match="another content"):
        place.gateway.create("j", "me", other)
    with pytest.raises(GoneError, match="no job"):
        place.gateway.create("j", "somebody else", order.request)


def test_a_batch_with_other_content_and_one_beyond_the_end_are_refused(place: Place) -> None:
    order, other = (order_of(BOOKS, case, SMALL) for case in CASES[:2])
    place.gateway.create("j", "me", order.request)
    place.gateway.put_batch("j", "me", sent(order)["books"][0])
    place.gateway.put_batch("j", "me", sent(order)["books"][0])
    with pytest.raises(ConflictError, match="other content"):
        place.gateway.put_batch("j", "me", sent(other)["books"][0])
    place.gateway.put_end("j", "me", "books", End(1, 10, ""))
    with pytest.raises(ConflictError, match="has ended with 1 batches"):
        place.gateway.put_batch("j", "me", sent(order)["books"][1])
    with pytest.raises(ConflictError, match="this end says 2"):
        place.gateway.put_end("j", "me", "books", End(2, 10, ""))
    with pytest.raises(ConflictError, match="reads a table 'films'"):
        place.gateway.put_end("j", "me", "films", End(2, 10, ""))


def test_an_end_with_another_digest_fails_the_job(place: Place) -> None:
    order = order_of(BOOKS, CASES[0], SMALL)
    place.gateway.create("j", "me", order.request)
    for table, batches in sent(order).items():
        for data in batches:
            place.gateway.put_batch("j", "me", data)
        place.gateway.put_end("j", "me", table, End(len(batches), 0, "somebody else's"))
    place.work()
    outcome = place.gateway.status("j", "me").outcome
    assert outcome
    assert outcome.state == "failed"
    assert "not those that the client's end names" in outcome.reason


def test_an_end_before_batches_that_were_merged_fails_the_job(place: Place) -> None:
    order = order_of(BOOKS, CASES[0], Options(batch_bytes=100, group=2))
    place.gateway.create("j", "me", order.request)
    for data in sent(order)["reviews"]:
        place.gateway.put_batch("j", "me", data)
    place.work()
    with pytest.raises(GoneError, match="ended it at 1 batches, after 2 had arrived"):
        place.gateway.put_end("j", "me", "reviews", End(1, 0, ""))


def test_cancel_ends_a_job_once(place: Place) -> None:
    order = order_of(BOOKS, CASES[0], SMALL)
    place.gateway.create("j", "me", order.request)
    assert place.gateway.cancel("j", "me").state == "cancelled"
    with pytest.raises(GoneError, match="cancelled: the client cancelled it"):
        place.gateway.put_batch("j", "me", sent(order)["books"][0])


def test_a_silent_client_expires_only_after_a_full_timeout(place: Place) -> None:
    order = order_of(BOOKS, CASES[0], Options(silent_seconds=100.0))
    place.gateway.create("j", "me", order.request)
    place.ports.clock.sleep(1000)
    reconciler = Reconciler(place.ports)
    for _ in range(4):  # it has just begun to look
        reconciler.round()
        place.ports.clock.sleep(25)
    assert place.gateway.status("j", "me").outcome is None  # and this was heard
    for _ in range(6):
        reconciler.round()
        place.ports.clock.sleep(25)
    outcome = place.gateway.status("j", "me").outcome
    assert outcome
    assert outcome.state == "expired"
    assert "silent for 100 seconds" in outcome.reason


def test_a_client_is_heard_although_a_gateways_clock_is_set_back(place: Place) -> None:
    clock = WrongClock(time=10_000.0)
    ports = replace(place.ports, clock=clock)
    gateway, reconciler = JobService(ports, "g1"), Reconciler(ports)
    request = order_of(BOOKS, CASES[0], Options(silent_seconds=100.0)).request
    gateway.create("j", "me", request)
    for ahead in (0.0, -300.0):
        clock.ahead = ahead
        for _ in range(12):
            clock.sleep(25.0)
            assert gateway.status("j", "me").outcome is None
            reconciler.round()


def test_what_cannot_be_planned_is_no_job(place: Place) -> None:
    broken = Text.of(find_application("books"))
    query = broken.queries[0].__class__("q1", "", "SELECT nothing FROM nowhere", "q1.sql")
    request = Request(Text(broken.name, "", broken.tables, (query,)))
    with pytest.raises(ApplicationError, match=r"q1\.sql"):
        place.gateway.create("j", "me", request)
    with pytest.raises(UsageError, match="not a valid job id"):
        place.gateway.create("../j", "me", request)
    assert place.stored() == []


def test_a_batch_of_a_live_producer_is_sent_before_the_next_one_exists(place: Place) -> None:
    """Nobody waits for a second batch of a table that is still being written."""
    order = order_of(BOOKS, CASES[0], SMALL)
    first = order.request.application.tables[0].name
    made = sent(order)
    assert len(made[first]) > 1

    def produced() -> Iterator[bytes]:
        for number, one in enumerate(made[first]):
            if number:
                assert place.gateway.stored_digest("j", "me", first, number - 1) is not None
            yield one

    live = replace(order, batches={**made, first: produced()})
    outcome, _ = Uploader(OneOwner(place.gateway), place.clock).run(live)
    assert outcome.state == "done"


@dataclass(frozen=True)
class Asked(OneOwner):
    """Notes which requests come; one of an earlier version does not know of an only batch."""

    knows_only: bool = True
    told: list[str] = field(default_factory=list)

    def put_batch(self, job_id: str, data: bytes, *, only: bool = False) -> Receipt:
        self.told.append("only batch" if only else "batch")
        return super().put_batch(job_id, data, only=only and self.knows_only)

    def put_end(self, job_id: str, table: str, end: End) -> Receipt:
        self.told.append("end")
        return super().put_end(job_id, table, end)

    def result(self, job_id: str, query: str, run: str) -> bytes:
        self.told.append("result")
        return super().result(job_id, query, run)


@pytest.mark.parametrize("knows_only", [True, False])
def test_the_only_batch_of_a_settled_table_is_also_its_end(
    place: Place, *, knows_only: bool
) -> None:
    """So the worker that maps it knows that the table is whole, and goes on. A gateway of an
    earlier version gets an end of its own."""
    order = order_of(BOOKS, CASES[0], Options(partitions=1))
    tables = [table.name for table in order.request.application.tables]
    assert all(len(batches) == 1 for batches in sent(order).values())
    settled = replace(order, settled=tables[:1])
    asked = Asked(place.gateway, knows_only=knows_only)
    Uploader(asked, place.clock).send(settled)
    assert asked.told == ["only batch", *([] if knows_only else ["end"]), "batch", "end"]
    outcome, results = Uploader(OneOwner(place.gateway), place.clock).run(settled)
    assert outcome.state == "done"
    assert results


def test_small_results_come_with_the_status(place: Place) -> None:
    order = order_of(BOOKS, CASES[0], Options(partitions=1))
    asked = Asked(place.gateway)
    _, fetched = Uploader(asked, place.clock).run(order)
    assert "result" in asked.told
    asked.told.clear()
    upload = Uploader(asked, place.clock, news_seconds=1.0).begin(order)
    for _ in upload.send():
        pass
    assert upload.follow().state == "done"
    assert upload.results == fetched
    assert "result" not in asked.told
