"""What the task engine costs: `python -m bench.tasks`.

Store operations and CPU time of a map task in jobs of growing size, a reconciler's round over a
large job, and whole runs with `--store` beside those whose progress nobody keeps.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from bench.datasets import dataset, warm_page_cache
from bench.imagined import ImaginedStore
from bench.store import creates_per_second
from bench.tables import Table
from caudal.application import find_application
from caudal.broker import MemoryBroker
from caudal.broker.port import Delivery
from caudal.files.sources import Sources
from caudal.formats import batch as batch_format
from caudal.formats import job as job_format
from caudal.formats.job import Job, Request, Text
from caudal.formats.keys import Keys, Message, Task, job_key
from caudal.jobs import execute
from caudal.jobs.intervals import IntervalSet
from caudal.jobs.job_index import enrol
from caudal.jobs.ports import Ports
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.runs import JobRuns
from caudal.local import split
from caudal.local.run import local_run
from caudal.local.threads import Wakeup, WakeupClock
from caudal.model import Application, Query
from caudal.model import Table as ModelTable
from caudal.results.answers import Answers
from caudal.run_options import RunOptions
from caudal.store import DirectoryStore, Store, open_store
from caudal.worker.compute import LocalCompute

APP, SCALE, REPEATS = "books", 0.1, 7
SIZES = (1_000, 10_000, 100_000, 1_000_000)
TASKS = 40
RECONCILED = 100_000
_QUERY = Query("q", "", "SELECT k, count(*) AS n FROM t GROUP BY k", "q.sql")
_TABLE = ModelTable("t", ("t.csv",), ("k",), "SELECT k FROM raw", "t.sql")
_REQUEST = Request(Text.of(Application("little", "", Path(), (_TABLE,), (_QUERY,))))


def measure(scale: float = SCALE) -> list[Table]:
    """The tables of this benchmark."""
    return [_map_tasks(), _whole(scale)]


def _map_tasks() -> Table:
    compute = LocalCompute()
    try:
        rows = [_row(size, compute) for size in SIZES]
    finally:
        compute.close()
    head = ["batches of the job", "reads", "listings", "creates", "CPU ms"]
    return Table("One map task of a small batch, on a store that counts", head, rows)


def _row(size: int, compute: LocalCompute) -> list[str]:
    """Tasks spread over the whole job, after one that warms up."""
    numbers = [size * place // TASKS for place in range(TASKS)]
    store = ImaginedStore(_job(compute), _batch(), size, IntervalSet.of(numbers))
    ports = _ports(store, compute)
    _handle(ports, numbers[0])
    store.asked.clear()
    began = time.process_time()
    for number in numbers[1:]:
        _handle(ports, number)
    spent = (time.process_time() - began) / (TASKS - 1)
    asked = (f"{store.asked[what] / (TASKS - 1):.1f}" for what in ("read", "list", "create"))
    return [f"{size:,}", *asked, f"{spent * 1000:.2f}"]


def _handle(ports: Ports, number: int) -> None:
    message = Message("j", "run", Task("map", "t", number))
    ending = execute.execute_task(ports, ports.broker.consume(), Delivery(1, message))
    assert ending is execute.TurnResult.ACKNOWLEDGED


def _job(compute: LocalCompute) -> Job:
    planned = compute.plan(_REQUEST, 0.0)
    return Job(
        id="j",
        run="run",
        owner="bench",
        created=0.0,
        request=_REQUEST,
        request_digest="",
        tables=planned.tables,
        plan=job_format.raw(planned.plan),
        versions={},
    )


def _batch() -> bytes:
    return batch_format.encode(
        table="t",
        number=0,
        file="t.csv",
        columns=("k",),
        first_line=2,
        offset=2,
        newlines=3,
        data=b"a\nb\na\n",
    )


def _ports(store: Store, compute: LocalCompute) -> Ports:
    clock = WakeupClock(Wakeup())
    return Ports(store, MemoryBroker(), compute, clock, lambda: "new", JobRuns(store))


def _whole(scale: float) -> Table:
    creates = creates_per_second()
    reconciling = _reconciling()
    bare, stored = _runs(scale)
    return Table(
        "The task engine",
        ["what", "measured", "target"],
        [
            ["durable small creates a second, one process", f"{creates:,.0f}", "≥ 1,500"],
            [f"a reconciler's round, {RECONCILED:,} batches, s", f"{reconciling:.2f}", "< 2"],
            [f"books, scale {scale:g}: split engine, CPU s", f"{bare:.2f}", ""],
            ["the same with --store, CPU s", f"{stored:.2f}", ""],
            ["what keeping the progress costs", f"{stored / bare - 1:.0%}", "< 15%"],
        ],
    )


def _reconciling() -> float:
    """A round over a directory in which every batch arrived, and every second one is mapped."""
    compute = LocalCompute()
    try:
        with tempfile.TemporaryDirectory() as folder:
            store = DirectoryStore(Path(folder), fsync=False)
            job = _job(compute)
            store.create(job_key("j"), job_format.encode(job))
            enrol(store, job)
            _fill(Path(folder))
            reconciler = Reconciler(_ports(store, compute))
            began = time.perf_counter()
            reconciler.round()
            return time.perf_counter() - began
    finally:
        compute.close()


def _fill(folder: Path) -> None:
    """Links, because so many files would take minutes. Every group lacks its last batch, so that
    none of them gives the round a reason to stop."""
    keys = Keys("j", "run")
    for number in range(RECONCILED):
        place = number % keys.group
        if place < keys.group - 1:
            for key in (keys.batch("t", number), keys.mapped("t", number)):
                path = folder / key
                if place == 0:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(_batch())
                else:
                    os.link(path.with_name("000"), path)


def _runs(scale: float) -> tuple[float, float]:
    """CPU seconds of both, in turn; the smallest, since other work on the machine only adds."""
    folder = dataset(APP, scale)
    warm_page_cache(folder)
    app, sources, options = find_application(APP), Sources(folder), RunOptions(threads=2)

    def bare() -> Answers:
        return split.run(app, sources, options=options)

    def stored() -> Answers:
        with (
            tempfile.TemporaryDirectory() as place,
            local_run(open_store(place), place, resume=False) as run,
        ):
            return run.run(app, sources, options=options)

    seconds: dict[Callable[[], Answers], list[float]] = {bare: [], stored: []}
    answers: dict[Callable[[], Answers], Answers] = {}
    for _ in range(REPEATS):
        for run in seconds:
            began = time.process_time()
            answers[run] = run()
            seconds[run].append(time.process_time() - began)
    for query, result in answers[bare].items():
        assert result.table.equals(answers[stored][query].table), query
    best, other = (statistics.quantiles(times, n=4)[0] for times in seconds.values())
    return best, other


if __name__ == "__main__":
    for table in measure():
        Console().print(table.rich())
