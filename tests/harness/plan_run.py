"""Run a plan on the job machine over typed rows: without files, threads or processes.

Rules
1. Everything between a batch and an answer is what ships: service, tasks, readiness, inputs, steps
   and formats. Only cleaning is left out: rows come typed.
2. Tables are sent in the order of the plan. Tasks that wait are done in the order that `order`
   gives, until none waits. So the same order gives the same run.
3. Hinted, each table is complete before the next one is sent. Else the plan loses its hints, and
   all tables are sent before the first task is done.
"""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from caudal.broker import MemoryBroker
from caudal.duck.sandbox import Sandbox, Types
from caudal.duck.steps import StepContext, TableWork
from caudal.errors import CaudalError, QueryError
from caudal.files.cleaning import Cleaning, Wanted
from caudal.files.pieces import Cleaned, FilePiece, TextRows
from caudal.files.rejected import RejectedRows
from caudal.formats import batch as batch_format
from caudal.formats import mapped
from caudal.formats.job import Job, Options, Request, Text
from caudal.formats.keys import Task
from caudal.formats.outcomes import End, digest_of_digests
from caudal.jobs import objects
from caudal.jobs.execute import execute_task
from caudal.jobs.interfaces import Inputs, MayGoOn, Planned, go_on
from caudal.jobs.plan import JobPlan, TableMap, to_json
from caudal.jobs.ports import Ports
from caudal.jobs.runs import JobRuns, read_outcome
from caudal.jobs.service import JobService
from caudal.jobs.so_far import GrowingQuery, RowsSoFar
from caudal.jobs.status import growing_queries
from caudal.kernels.csv import NO_DAMAGE
from caudal.local.threads import Wakeup, WakeupClock
from caudal.model import Query, Table
from caudal.sql.planner import Plan
from caudal.sql.table_needs import Prefilter
from caudal.store import MemoryStore
from caudal.worker.task_steps import Steps, StepSettings

Order = Callable[[Sequence[int]], Iterable[int]]
_JOB, _OWNER, _GROUP = "j", "me", 2


@dataclass(frozen=True)
class PlanRun:
    """A plan, and how to run it: `stages` for rows between stages, `results` for answers."""

    plan: Plan
    partitions: int
    stages: Sandbox
    results: Sandbox
    hinted: bool = False

    def answers(
        self, tables: Mapping[str, Sequence[pa.Table]], order: Order = iter
    ) -> dict[str, pa.Table]:
        """Every query's rows; raises what any of them failed with."""
        split = _job_plan(self.plan)
        place = _Place(split if self.hinted else split.without_hints(), self)
        for table in (one.table.name for one in split.maps):
            place.send(table, tables[table])
            if self.hinted:
                place.work(order)
        place.work(order)
        return place.collected()

    def looks(
        self, tables: Mapping[str, Sequence[pa.Table]], chance: random.Random
    ) -> Iterator[dict[str, RowsSoFar]]:
        """The answers so far of all growing queries, after each batch. Batches come in any order,
        and a table ends with its last one."""
        place = _Place(_job_plan(self.plan), self)
        left = {name: len(tables[name]) for name in place.tables}
        for name in (one for one, count in left.items() if not count):
            place.send(name, [])
        coming = [(name, number) for name, count in left.items() for number in range(count)]
        known: dict[str, RowsSoFar] = {}
        for name, number in chance.sample(coming, len(coming)):
            place.put(name, number, tables[name][number])
            left[name] -= 1
            if not left[name]:
                place.end(name, tables[name])
            place.work(iter)
            known = place.look(known)
            yield known


@dataclass
class _Place:
    split: JobPlan
    how: PlanRun
    raised: list[Exception] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store, broker = MemoryStore(), MemoryBroker()
        sandboxes = {Types.LOSSLESS: self.how.stages, Types.PLAIN: self.how.results}
        settings = StepSettings(
            open_sandbox=lambda limits, register, types: sandboxes[types], clean=_typed_rows
        )
        self.steps = Steps(settings)
        self.ports = Ports(
            self.store, broker, self, WakeupClock(Wakeup()), lambda: "run", JobRuns(self.store)
        )
        self.service = JobService(self.ports, "service")
        self.consumer = broker.consume()
        text = Text("plan", "", tuple(one.table for one in self.split.maps), self.split.queries)
        options = Options(partitions=self.how.partitions, group=_GROUP)
        self.service.create(_JOB, _OWNER, Request(text, options=options))

    @property
    def versions(self) -> dict[str, str]:
        """See the port of compute."""
        return {}

    def plan(self, request: Request, moment: float) -> Planned:
        """See the port of compute."""
        return Planned(tuple(one.table.name for one in self.split.maps), to_json(self.split))

    def run(
        self, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn = go_on
    ) -> bytes:
        """See the port of compute."""
        try:
            return self.steps.run(job, task, inputs, alone=True)
        except Exception as error:
            self.raised.append(error)
            raise

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(one.table.name for one in self.split.maps)

    def send(self, table: str, batches: Sequence[pa.Table]) -> None:
        for number, rows in enumerate(batches):
            self.put(table, number, rows)
        self.end(table, batches)

    def put(self, table: str, number: int, rows: pa.Table) -> None:
        self.service.put_batch(_JOB, _OWNER, _batch(table, number, rows))

    def end(self, table: str, batches: Sequence[pa.Table]) -> None:
        found = [_batch(table, number, rows) for number, rows in enumerate(batches)]
        digests = [batch_format.check(data, table).digest for data in found]
        self.service.put_end(_JOB, _OWNER, table, End(len(digests), 0, digest_of_digests(digests)))

    def look(self, known: Mapping[str, RowsSoFar]) -> dict[str, RowsSoFar]:
        job_run = self.ports.job_runs.open(_JOB)
        assert job_run is not None
        found = dict(known)
        for query in growing_queries(job_run):
            before = known[query].covered if query in known else {}
            growing = GrowingQuery.of(self.ports, job_run, query)
            found[query] = growing.rows(growing.covered(before))
        return found

    def work(self, order: Order) -> None:
        """Do what waits, and what follows from it; a bug ends it at once."""
        while waiting := list(iter(self.consumer.take, None)):
            for place in order(range(len(waiting))):
                execute_task(self.ports, self.consumer, waiting[place])
                for bug in itertools.filterfalse(_is_foreseen, self.raised):
                    raise bug

    def collected(self) -> dict[str, pa.Table]:
        job_run = self.ports.job_runs.open(_JOB)
        assert job_run is not None
        outcome = read_outcome(self.store, job_run.keys)
        if outcome is None or outcome.state != "done":
            raise self.raised[0] if self.raised else AssertionError(f"the job ended: {outcome}")
        for reason in outcome.failed.values():
            raise QueryError(reason)
        names = [query.name for query in self.split.queries]
        return {name: objects.result(self.store, job_run.keys, name).rows() for name in names}


def _is_foreseen(error: Exception) -> bool:
    return isinstance(error, CaudalError)


def _batch(table: str, number: int, rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return batch_format.encode(
        table=table,
        number=number,
        file=f"{table}.parquet",
        columns=tuple(rows.column_names),
        first_line=1,
        offset=0,
        newlines=0,
        data=memoryview(sink.getvalue()),
        records="arrow",
        compress=False,
    )


def _typed_rows(
    context: StepContext,
    work: TableWork,
    index: batch_format.BatchHeader,
    records: bytes | memoryview,
) -> Cleaned:
    """Rows as they are: nothing of them is text, and nothing is rejected."""
    rows = mapped.read_rows(records)
    rejected = RejectedRows.of(index.table, index.file, NO_DAMAGE)
    piece = FilePiece(index.file, len(records), 0, _unread)
    return Cleaned(rows, rows.num_rows, rejected, 0, piece)


def _unread() -> TextRows:
    raise AssertionError("typed rows are not read as text")


def _job_plan(plan: Plan) -> JobPlan:
    """A plan with the tables that it reads, which need no cleaning."""
    names = dict.fromkeys(scan.table for scan in plan.scans)
    maps = tuple(
        TableMap(
            _cleaning(name, tuple(plan.tables[name])),
            tuple(scan for scan in plan.scans if scan.table == name),
        )
        for name in names
    )
    queries = tuple(Query(one.query, "", one.sql, f"{one.query}.sql") for one in plan.finishes)
    return JobPlan(plan, maps, queries, {})


def _cleaning(name: str, columns: tuple[str, ...]) -> Cleaning:
    table = Table(name, (f"{name}.parquet",), columns, "FROM raw", f"{name}.sql")
    return Cleaning(table, "FROM raw", Wanted(name, columns), (), Prefilter())
