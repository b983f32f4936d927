"""One job in this process: cut, send, follow and collect, while worker threads do its tasks.

Rules
1. Tables are sent in the order of the plan. A table is sent after the previous one is mapped, and
   merged if hints are made from it. The number of waiting batches is bounded, and so is memory.
2. The memory of the process is bounded (duck/containment.py) by the memory limit, or by what is
   free. Each worker has a share. DuckDB and the inputs of steps spill into the folder of the run.
3. An error that ends a worker, the store or the job ends the run.
4. The caller's thread only cuts and follows. It reports all progress and rejected rows, in the
   order of the files.
"""

import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from caudal.duck import steps
from caudal.duck.bind import choose_queries
from caudal.duck.containment import available_bytes, memory_bound
from caudal.duck.profile import MeasuredSandbox, Measurements, profile_stages
from caudal.duck.sandbox import Sandbox, SandboxLimits
from caudal.errors import CaudalError, NotFoundError, QueryError, UsageError
from caudal.files.batches import CutNote, Packing, cut_files
from caudal.files.file_notes import file_notes
from caudal.files.inputs import InputFile
from caudal.files.pieces import Cleaned
from caudal.files.sources import Sources
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import Task
from caudal.formats.outcomes import End, Outcome, digest_of_digests
from caudal.jobs import objects
from caudal.jobs.facts import StoreFacts
from caudal.jobs.failed_queries import end_done
from caudal.jobs.interfaces import Compute, ConflictError, GoneError, Planned
from caudal.jobs.plan import from_json, to_json
from caudal.jobs.ports import Bounds, Ports
from caudal.jobs.readiness import all_finished, table_complete
from caudal.jobs.reconcile import missing_tasks
from caudal.jobs.runs import JobRun, JobRuns, read_outcome
from caudal.jobs.service import JobService
from caudal.kernels.csv import Found
from caudal.kernels.sentiment import SentimentModel, load_model
from caudal.local.borrowed import BorrowingStore, ChangedFileError
from caudal.local.table_progress import TableFollower, TableReport
from caudal.local.threads import Wakeup, WakeupBroker, WakeupClock, WorkerThreads
from caudal.model import Application, ParameterValue
from caudal.results.answers import Answers, Result, TableProfile
from caudal.results.failures import settled
from caudal.results.rejects import Rejects
from caudal.run_options import Progress, RunOptions, Silent
from caudal.sizes import told_bytes
from caudal.worker.compute import LocalCompute
from caudal.worker.turns import SharedTurns

_Models = Mapping[str, SentimentModel]

_OWNER = "this process"
_EVERYTHING = 1 << 40
# No other job waits here, and no loop or list looks for this one.
_BOUNDS = Bounds(folds_ahead=_EVERYTHING, folds_most=_EVERYTHING, indexed=False)
_LOOK_SECONDS = 0.2  # between two checks of a run without events
_WORKER_MEMORY_BYTES = 2 << 30
# With a memory limit: the memory of a process besides its sandboxes (the interpreter with its
# libraries, batches in flight), and the least memory of a sandbox for queries of some size.
_PROCESS_BYTES = 256 << 20
_LEAST_WORKER_BYTES = 64 << 20


@dataclass(frozen=True)
class LocalRequest:
    """The request: application, files, queries, parameters and options."""

    app: Application
    sources: Sources
    queries: tuple[str, ...] = ()  # empty: all
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    options: RunOptions = field(default_factory=RunOptions)
    progress: Progress = field(default_factory=Silent)
    moment: float = field(default_factory=time.time)  # what now() gives, in seconds since 1970

    @classmethod
    def of(
        cls,
        app: Application,
        sources: Sources,
        queries: Sequence[str] | None,
        parameters: Mapping[str, ParameterValue] | None,
        options: RunOptions | None,
        progress: Progress | None,
    ) -> "LocalRequest":
        """Return the request of the arguments that every engine takes."""
        how = options or RunOptions(), progress or Silent()
        return cls(app, sources, tuple(queries or ()), parameters or {}, *how)

    def as_request(self) -> Request:
        """Return the request in the form in which a client sends it."""
        options = self.options
        text = Text.of(replace(self.app, sentiment=options.sentiment or self.app.sentiment))
        how = Options(batch_bytes=options.read_bytes, partitions=options.partitions)
        return Request(text, self.queries, dict(self.parameters), how)

    def alone(self, query: str) -> "LocalRequest":
        """Return the request for one query. Its rejected rows were already reported."""
        options = replace(self.options, reject_sink=None)
        return replace(self, queries=(query,), options=options)


def worker_limits(options: RunOptions, folder: Path) -> SandboxLimits:
    """Return the limits of each sandbox: one per worker, and one for the caller. A step may take
    any time, as in the embedded engine."""
    workers = options.threads + 1
    share = 2 * _WORKER_MEMORY_BYTES // workers
    if options.memory_limit is not None:
        least = _PROCESS_BYTES + workers * _LEAST_WORKER_BYTES
        if options.memory_limit < least:
            raise UsageError(
                f"a memory limit of {told_bytes(options.memory_limit)} is too small for the split "
                f"engine with {options.threads} threads: give at least {-(-least // 1_000_000)}MB"
            )
        share = (options.memory_limit - _PROCESS_BYTES) // workers
    spill = folder / "spilled"
    spill.mkdir(exist_ok=True)
    return SandboxLimits(memory_bytes=share, seconds=math.inf, spill=spill, trusted=True)


def run_and_settle(request: LocalRequest, ask: Callable[[LocalRequest], Answers]) -> Answers:
    """Return the answers with the seconds that all of it took."""
    began = time.perf_counter()
    answers = settle(ask(request), request, ask)
    return replace(answers, seconds=time.perf_counter() - began)


def settle(
    answers: Answers, request: LocalRequest, ask: Callable[[LocalRequest], Answers]
) -> Answers:
    """Run queries that failed together again, each alone; raise if there is no answer at all
    (results/failures.py, rules 2 and 3)."""
    reasons = Counter(map(str, answers.failures.values()))
    results, errors = dict(answers.results), dict(answers.failures)
    for name, error in answers.failures.items():
        if reasons[str(error)] > 1:
            again = ask(request.alone(name))
            results |= again.results
            errors |= again.failures
    asked = [query.name for query in choose_queries(request.app, request.queries or None)]
    return replace(
        answers,
        results={name: results[name] for name in asked if name in results},
        failures=settled(results, {n: why for n, why in errors.items() if n not in results}),
    )


@dataclass
class LocalJob:
    """One running job, in the thread of the caller. `folder` is for spilled data."""

    store: BorrowingStore
    job_id: str
    request: LocalRequest
    folder: Path
    packing: Packing = Packing.NONE
    wakeup: Wakeup = field(default_factory=Wakeup)

    def __post_init__(self) -> None:
        self.options = self.request.options
        self.broker = WakeupBroker(self.wakeup)
        self.clock = WakeupClock(self.wakeup, self.request.moment)
        self.job_runs = JobRuns(self.store)
        self.rejects = Rejects(self.options.reject_sink, keeps_records=self.options.records)
        self.found: dict[tuple[str, int], Found | None] = {}  # of batches that are not mapped yet
        self.measured = Measurements() if self.options.profile else None

    def answers(self) -> Answers:
        """Return all answers; `failures` names failed queries. Raise errors of the whole job."""
        limits = worker_limits(self.options, self.folder)
        name = self.options.sentiment or self.request.app.sentiment
        models = {name: load_model(name)}
        job_run = self._begin(limits, models)
        tables = {table.name: table for table in self.request.app.tables}
        files = {name: self.request.sources.files(tables[name]) for name in job_run.job.tables}
        every = (file for some in files.values() for file in some)
        self.store.plain = frozenset(file.name for file in every if file.is_plain)
        with (
            memory_bound(self.options.memory_limit or available_bytes()),
            self._workers(limits, models) as self.workers,
        ):
            self.workers.start()
            profiles = tuple(self._send(job_run, table, files[table]) for table in files)
            self.rejects.notes += (note for some in files.values() for note in file_notes(some))
            while not self._has_ended(job_run):
                self._pause()
            return self._collected(job_run, profiles)

    def _begin(self, limits: SandboxLimits, models: _Models) -> JobRun:
        """Create the job, or open it again and publish its missing tasks."""
        planner = LocalCompute if self.options.hints else _UnhintedCompute
        ports = self._ports(planner(limits, models=models))
        self.service = JobService(ports, secrets.token_hex(8))
        receipt = self.service.create(self.job_id, _OWNER, self.request.as_request())
        job_run = self.job_runs.open(self.job_id)
        if job_run is None:
            raise GoneError(f"there is no job {self.job_id}")
        self.is_done = read_outcome(self.store, job_run.keys) is not None
        if not receipt.new and not self.is_done:
            facts = StoreFacts(self.store, job_run.keys)
            missing = missing_tasks(job_run.shape, facts, _EVERYTHING)
            if missing:
                self.broker.publish([job_run.message(task) for task in missing])
            elif all_finished(job_run.shape, facts):
                end_done(self.store, self.clock, job_run)
        return job_run

    def _workers(self, limits: SandboxLimits, models: _Models) -> WorkerThreads:
        opened = partial(MeasuredSandbox, measurements=self.measured) if self.measured else Sandbox
        compute = partial(
            LocalCompute,
            limits,
            models=models,
            turns=SharedTurns(),
            open_sandbox=opened,
            clean=self._clean,
        )
        return WorkerThreads(self.options.threads, compute, self._ports, self.wakeup)

    def _ports(self, compute: Compute) -> Ports:
        return Ports(
            store=self.store,
            broker=self.broker,
            compute=compute,
            clock=self.clock,
            new_id=partial(secrets.token_hex, 16),
            job_runs=self.job_runs,
            bounds=_BOUNDS,
        )

    def _send(self, job_run: JobRun, table: str, files: Sequence[InputFile]) -> TableProfile:
        """Send one table: cut it, store or compare its batches, wait until it is mapped."""
        report = TableReport(table, files, self.rejects, self.request.progress, self.options.strict)
        follower = TableFollower(self.store, job_run, report)
        digests, size = [], 0
        for number, data in enumerate(self._cut(job_run, table, files, report.notes)):
            index = batch_format.describe(frame.of_bytes(data), f"batch {number}")
            self._send_batch(job_run, index, data, report.notes[number].found)
            report.notes[number] = CutNote(report.notes[number].reached)
            digests.append(index.digest)
            size += index.bytes
            while self.broker.waiting_maps() > self.options.threads:
                self._pause()
            follower.advance(number)
            if self.workers.raised:
                self._has_ended(job_run)
        self._send_end(table, End(len(digests), size, digest_of_digests(digests)))
        while not (follower.advance(len(digests)) and self._may_go_on(job_run, table)):
            self._has_ended(job_run)
            self._pause()
        return report.profile()

    def _may_go_on(self, job_run: JobRun, table: str) -> bool:
        """Return whether later tables can use all hints of this table (rule 1)."""
        scans = {scan.name for scan in job_run.split.plan.scans if scan.table == table}
        used = (stage for hint in job_run.split.plan.hints for stage, _ in hint.sources)
        facts = StoreFacts(self.store, job_run.keys)
        return scans.isdisjoint(used) or table_complete(table, job_run.shape, facts)

    def _send_end(self, table: str, end: End) -> None:
        try:
            self.service.put_end(self.job_id, _OWNER, table, end)
        except ConflictError:
            raise ChangedFileError(
                f"table {table}: a file changed since the unfinished run began: bring it back, or "
                "give another --store"
            ) from None
        except GoneError as error:
            raise self._error_of(error.outcome) if error.outcome else error from None

    def _cut(
        self, job_run: JobRun, table: str, files: Sequence[InputFile], notes: list[CutNote]
    ) -> Iterator[bytes]:
        one = job_run.split.table(table)
        return cut_files(
            table,
            files,
            self.options.read_bytes,
            columns=one.cleaning.wanted.columns,
            scanned=(one.prefiltered or one.cleaning).wanted.columns,
            packing=self.packing,
            noted=notes.append,
        )

    def _clean(
        self,
        context: steps.StepContext,
        work: steps.TableWork,
        index: batch_format.BatchHeader,
        records: bytes | memoryview,
    ) -> Cleaned:
        """Clean a batch. The first time, reuse the scan of its records that cut it."""
        found = self.found.pop((index.table, index.number), None)
        return steps.clean_batch(context, work, index, records, found)

    def _send_batch(
        self, job_run: JobRun, index: batch_format.BatchHeader, data: bytes, found: Found | None
    ) -> None:
        """Create the object, then publish the task; do neither if the object exists."""
        key = job_run.keys.batch(index.table, index.number)
        try:
            stored = self.store.head(key)
        except NotFoundError:
            if self.is_done:
                raise _changed(index) from None
            self.store.create(key, data)
            self.found[index.table, index.number] = found
            self.broker.publish([job_run.message(Task("map", index.table, index.number))])
            return
        if not stored.holds_the_same(index):
            raise _changed(index)

    def _has_ended(self, job_run: JobRun) -> bool:
        """Return whether the job is done; raise the error that made it fail."""
        outcome = read_outcome(self.store, job_run.keys)
        if outcome is not None and outcome.state != "done":
            raise self._error_of(outcome)
        return outcome is not None

    def _pause(self) -> None:
        """Wait for the next event; raise what ends the run (rule 3)."""
        if self.store.failure is not None:
            raise self.store.failure
        if self.workers.bugs:
            raise self.workers.bugs[0]
        if self.job_runs.open(self.job_id) is None:
            raise GoneError(f"there is no job {self.job_id}")
        self.wakeup.wait(_LOOK_SECONDS)

    def _error_of(self, outcome: Outcome) -> CaudalError:
        """Return the error that became the outcome, with its original type."""
        same = [error for error in self.workers.raised if str(error) == outcome.reason]
        return same[0] if same else QueryError(outcome.reason)

    def _collected(self, job_run: JobRun, tables: tuple[TableProfile, ...]) -> Answers:
        results, errors = {}, {}
        for query in job_run.split.queries:
            found = objects.result(self.store, job_run.keys, query.name)
            if found.index.error:
                errors[query.name] = QueryError(found.index.error)
                continue
            seconds = self.workers.seconds.get(query.name, 0.0)
            results[query.name] = Result(query.name, found.index.title, found.rows(), seconds)
            self.request.progress.query(query.name, seconds)
        plan = job_run.split.plan
        operators = profile_stages(plan, self.measured) if self.measured else ()
        return Answers(results, self.rejects, tables, operators, failures=errors)


def _changed(index: batch_format.BatchHeader) -> ChangedFileError:
    return ChangedFileError(
        f"{index.file}: the file changed since the unfinished run began (batch {index.number} of "
        f"table {index.table}): bring it back, or give another --store"
    )


class _UnhintedCompute(LocalCompute):
    """Plans without hints, so that no row is dropped early."""

    def plan(self, request: Request, moment: float) -> Planned:
        """See the port."""
        planned = super().plan(request, moment)
        return replace(planned, plan=to_json(from_json(planned.plan).without_hints()))
