"""One wrong bit in any stored object of a real job: the right rows or a clear error, never others.

The bit is flipped when the object is created, so that everybody who ever reads it meets it.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.harness.damaging_store import DamagingStore, flipped, spread
from tests.harness.one_owner import OneOwner

from caudal.broker import MemoryBroker
from caudal.errors import CaudalError, FormatError
from caudal.files.batches import cut_files
from caudal.files.sources import Sources
from caudal.formats import batch as batch_format
from caudal.formats import outputs
from caudal.formats.job import Job, Options, Request, Text
from caudal.formats.keys import REJECTS, Keys
from caudal.formats.outcomes import Outcome
from caudal.jobs import execute
from caudal.jobs.interfaces import Inputs, JobError, MayGoOn, Planned, go_on
from caudal.jobs.ports import Ports
from caudal.jobs.preview import Aborted, Complete, Rows
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.runs import JobRuns, read_outcome
from caudal.jobs.service import JobService
from caudal.jobs.upload import Uploader, UploadRequest
from caudal.local.run import local_run
from caudal.model import Application, Query, Table
from caudal.run_options import RunOptions
from caudal.store import DirectoryStore, MemoryStore, Store
from caudal.worker.compute import LocalCompute

CLEAN = (
    "SELECT k, to_integer(v) AS v, CASE WHEN to_integer(v) IS NULL THEN 'v is no number' END "
    "AS reject FROM raw"
)
APP = Application(
    "little",
    "",
    Path(),
    (
        Table("t", ("t.csv",), ("k", "v"), CLEAN, "t.sql"),
        Table("u", ("u.csv",), ("k",), "SELECT k FROM raw", "u.sql"),
    ),
    (
        Query("big", "", "SELECT k, v FROM t WHERE v > 2", "big.sql"),
        Query("both", "", "SELECT k, sum(v) s FROM t JOIN u USING (k) GROUP BY k", "both.sql"),
    ),
)
FILES = {"t": "k,v\n" + "a,1\nb,2\nc,3\nd,x\n" * 6, "u": "k\na\nc\n"}
REQUEST = Request(Text.of(APP), options=Options(batch_bytes=40, partitions=2, group=2))
KINDS = {  # where an object of each kind lies, and how many bits of it are tried
    "job.json": 20,
    "/batches/": 2,  # damaged records take a child process each: formats/ tries every bit of them
    "/end.json": 20,
    "/mapped/t/": 40,
    "/mapped/u/": 20,
    "/merged/": 20,
    "/folds/": 40,
    "/results/big": 40,
    "/results/both": 40,
    f"/results/{REJECTS}": 20,
    "/outcome.json": 12,
    "/seen/": 2,
}
SMALL = RunOptions(threads=1, batch_bytes=40, partitions=2)
Answers = dict[str, list[dict[str, Any]]]


class OnePlan:
    """The engine; a request that comes again and again is planned once."""

    def __init__(self) -> None:
        self.local = LocalCompute()
        self._planned: Planned | None = None

    @property
    def versions(self) -> Mapping[str, str]:
        return self.local.versions

    def plan(self, request: Request, moment: float) -> Planned:
        self._planned = self._planned or self.local.plan(request, moment)
        return self._planned

    def run(
        self, job: Job, task: Any, inputs: Inputs, deliveries: int, beat: MayGoOn = go_on
    ) -> bytes:
        return self.local.run(job, task, inputs, deliveries, beat)


@dataclass
class Clock:
    """While somebody sleeps the others work; whoever sleeps for ever is stuck."""

    time: float = 1_000_000.0
    naps: int = 0
    while_asleep: Callable[[], object] = field(default=lambda: None)

    def now(self) -> float:
        return self.time

    def elapsed(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += max(seconds, 5.0)
        self.naps += 1
        assert self.naps < 60, "the job is stuck"
        self.while_asleep()


@dataclass
class Place:
    """A cluster in one process, whose store may damage one object."""

    store: DamagingStore
    compute: OnePlan

    def __post_init__(self) -> None:
        ids, broker, self.clock = itertools.count(), MemoryBroker(), Clock()
        worker_clock = Clock()
        worker_clock.sleep = lambda seconds: None  # type: ignore[method-assign]
        self.ports, theirs = (
            Ports(
                store=self.store,
                broker=broker,
                compute=self.compute,
                clock=clock,
                new_id=lambda: f"run{next(ids)}",
                job_runs=JobRuns(self.store),
            )
            for clock in (self.clock, worker_clock)
        )
        self.gateway, self.reconciler = JobService(self.ports, "g"), Reconciler(self.ports)
        consumer = broker.consume()

        def work() -> None:
            for _ in range(60):
                if execute.take_turn(theirs, consumer) is execute.TurnResult.IDLE:
                    break

        self.work = work
        self.clock.while_asleep = self._work_and_reconcile

    def _work_and_reconcile(self) -> None:
        self.work()
        self.reconciler.round()

    def run(self, batches: dict[str, list[bytes]]) -> Answers | str:
        """The rows of all queries, or the error."""
        try:
            order = UploadRequest("j", REQUEST, batches)
            outcome, results = Uploader(OneOwner(self.gateway), self.clock).run(order)
        except (FormatError, JobError) as error:
            return str(error)
        return rows_of(results) if outcome.state == "done" else reason_of(outcome)


def rows_of(results: dict[str, bytes]) -> Answers:
    tables = {name: outputs.decode_result(data, name)[1] for name, data in results.items()}
    return {name: sorted(table.to_pylist(), key=repr) for name, table in tables.items()}


def reason_of(outcome: Outcome) -> str:
    assert outcome.state == "failed"
    return outcome.reason


@pytest.fixture(scope="module")
def compute() -> Iterator[OnePlan]:
    made = OnePlan()
    yield made
    made.local.close()


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[bytes]]:
    folder, made = tmp_path_factory.mktemp("files"), {}
    for table, text in FILES.items():
        (folder / f"{table}.csv").write_text(text)
        made[table] = list(cut_files(table, [folder / f"{table}.csv"], 40))
    return made


@pytest.fixture(scope="module")
def expected(compute: OnePlan, batches: dict[str, list[bytes]]) -> Answers:
    found = Place(DamagingStore(MemoryStore()), compute).run(batches)
    assert isinstance(found, dict)
    assert found["both"] == [{"k": "a", "s": 6}, {"k": "c", "s": 18}]
    assert [row["rows"] for row in found[REJECTS]] == [6]
    return found


def names(key: str, error: str) -> bool:
    """Does an error name the object under the key? A batch is named by its number and table."""
    parts = key.split("/")
    return key in error or ("batches" in parts and f"batch 0 of {parts[4]}" in error)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["memory", "directory"])
def test_a_flipped_bit_never_gives_other_rows(
    kind: str,
    where: str,
    compute: OnePlan,
    batches: dict[str, list[bytes]],
    expected: Answers,
    tmp_path: Path,
) -> None:
    few = 1 if where == "memory" else 4
    sound = DamagingStore(MemoryStore(), kind)
    Place(sound, compute).run(batches)
    size = len(sound.read(sound.key))
    errors = 0
    for number, bit in enumerate(spread(8 * size, max(2, KINDS[kind] // few))):
        store: Store = MemoryStore()
        if where == "directory":
            store = DirectoryStore(tmp_path / str(number), fsync=False)
        damaging = DamagingStore(store, kind, bit)
        found = Place(damaging, compute).run(batches)
        assert damaging.key, "nothing was damaged"
        if isinstance(found, str):
            errors += 1
            assert names(damaging.key, found), found
        else:
            assert found == expected, f"bit {bit} of {damaging.key}"
    assert bool(errors) == (kind != "/seen/")


def test_a_flipped_bit_never_gives_other_rows_of_a_preview(
    compute: OnePlan, batches: dict[str, list[bytes]], expected: Answers
) -> None:
    def shown(kind: str, bit: int) -> tuple[DamagingStore, list[dict[str, Any]], str]:
        damaging = DamagingStore(MemoryStore(), kind, bit)
        place, rows = Place(damaging, compute), list[dict[str, Any]]()
        place.run(batches)
        preview = place.gateway.preview("j", "me", "big")
        for number in itertools.count():
            match preview.step(number):
                case Rows() as step:
                    rows += step.rows.to_pylist()
                case Complete():
                    return damaging, rows, ""
                case Aborted() as step:
                    return damaging, rows, step.reason
                case other:
                    raise AssertionError(other)
        raise AssertionError("unreachable")

    sound, rows, reason = shown("/mapped/t/", 0)
    assert not rows
    assert names(sound.key, reason)
    for bit in spread(8 * len(sound.read(sound.key)), 40):
        damaging, rows, reason = shown("/mapped/t/", bit)
        if reason:
            assert names(damaging.key, reason)
            assert all(row in expected["big"] for row in rows)
        else:  # no row lies there
            assert sorted(rows, key=repr) == expected["big"]


@pytest.mark.parametrize("is_met_by", ["a worker", "the reconciler"])
def test_an_end_that_is_damaged_later_fails_the_job(
    is_met_by: str, compute: OnePlan, batches: dict[str, list[bytes]]
) -> None:
    place = Place(DamagingStore(MemoryStore()), compute)
    Uploader(OneOwner(place.gateway), place.clock).send(UploadRequest("j", REQUEST, batches))
    key = "jobs/j/run0/tables/t/end.json"
    damaged = flipped(place.store.read(key), 333)
    place.store.delete(key)
    place.store.create(key, damaged)
    if is_met_by == "a worker":
        place.work()
    else:
        for _ in range(5):
            place.reconciler.round()
    outcome = read_outcome(place.store, Keys("j", "run0", 2))
    assert outcome is not None
    assert outcome.state == "failed"
    assert key in outcome.reason


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "/seen/"])
def test_a_flipped_bit_never_gives_other_rows_of_a_run_in_one_process(
    kind: str, expected: Answers, tmp_path: Path
) -> None:
    for table, text in FILES.items():
        (tmp_path / f"{table}.csv").write_text(text)
    for number, bit in enumerate((77, 150, 4321)):
        damaging = DamagingStore(DirectoryStore(tmp_path / str(number), fsync=False), kind, bit)
        try:
            with local_run(damaging, "the store", resume=False) as run:
                answers = run.run(APP, Sources(tmp_path), options=SMALL)
        except CaudalError as error:
            told = str(error)
        else:
            told = ""
            for name, answer in answers.items():
                assert sorted(answer.table.to_pylist(), key=repr) == expected[name]
        assert not told or names(damaging.key.removeprefix("runs/"), told)


def test_every_bit_of_a_compressed_batch() -> None:
    """Some bits of zstd's frame mean nothing: then the records are the same."""
    records = b"again and again\n" * 50
    data = batch_format.encode(
        table="t", number=0, file="t.csv", columns=("k",), first_line=2, offset=2, newlines=50,
        data=records,
    )  # fmt: skip
    noticed = 0
    for bit in range(8 * len(data)):
        try:
            assert batch_format.decode(flipped(data, bit), "k")[1] == records
        except FormatError:
            noticed += 1
    assert noticed > 7 * len(data)
