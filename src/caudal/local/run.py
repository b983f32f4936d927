"""A run in one process whose progress lies in a store: killed at any moment, it can go on.

Rules
1. The run is a job (jobs/service.py) whose id is derived from what is asked: application, queries,
   parameters, options, the files' names. So the same command finds its unfinished run again.
2. Everything is cut anew when a run is resumed, and every batch compared with the digest that is
   stored: a file that changed is an error, never a mixture. What is stored is not stored again, and
   a task that is done is not done again.
3. The broker is in memory: what it held when the process was killed follows from the store
   (jobs/reconcile.py) and is published once, at the beginning. After that every task publishes
   what follows from it, as in a cluster.
4. The run stays in the store until its answers are where they were wanted; only then it is
   removed, job.json first. A run that failed is removed at once: it would fail again. A query
   that failed alone leaves the others their answers (failed_queries.py).
"""

import contextlib
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import msgspec

from caudal.duck.sandbox import SandboxLimits
from caudal.errors import (
    ApplicationError,
    CaudalError,
    DataError,
    FormatError,
    NotFoundError,
    QueryError,
    StoreError,
    UsageError,
)
from caudal.files.batches import cut_files
from caudal.files.sources import Sources
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.digest import digest
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import Task, job_key
from caudal.formats.outcomes import End, Outcome, digest_of_digests
from caudal.jobs import objects
from caudal.jobs.facts import StoreFacts
from caudal.jobs.failed_queries import end_done
from caudal.jobs.interfaces import Compute, ConflictError, GoneError
from caudal.jobs.ports import Ports
from caudal.jobs.readiness import all_finished
from caudal.jobs.reconcile import missing_tasks
from caudal.jobs.runs import JobRun, JobRuns, read_outcome
from caudal.jobs.service import JobService
from caudal.local.borrowed import BorrowingStore, ChangedFileError
from caudal.local.split import worker_limits
from caudal.local.table_progress import TableFollower
from caudal.local.threads import Wakeup, WakeupBroker, WakeupClock, WorkerThreads
from caudal.model import Application, ParameterValue
from caudal.results.answers import Answers, Result, TableProfile
from caudal.results.failures import settled
from caudal.results.rejects import Rejects
from caudal.run_options import Progress, RunOptions, Silent
from caudal.store.port import Store, entries
from caudal.store.probe import require_conditional_create
from caudal.version import __version__
from caudal.worker.compute import LocalCompute
from caudal.worker.turns import SharedTurns

_OWNER = "this process"
_EVERYTHING = 1 << 40
_LOOK_SECONDS = 0.2  # between two looks at a quiet run
_FAILED = (QueryError, ApplicationError, DataError)  # rule 4


@contextlib.contextmanager
def local_run(store: Store, place: str, *, resume: bool) -> Iterator["LocalRun"]:
    """A run in a store; what it left there is removed when the block ends well.

    `place` is what the user calls the store. It must prove that only the first of two creates wins.
    """
    require_conditional_create(store)
    run = LocalRun(store, place, resume=resume)
    yield run
    run.remove()


class LocalRun:
    """One run. `run` has the signature of an engine and gives the same answers."""

    def __init__(self, store: Store, place: str, *, resume: bool) -> None:
        self._inner = store
        self._place = place
        self._resume = resume
        self._job_id = ""
        self._store = BorrowingStore(store, kept=0)

    def run(
        self,
        app: Application,
        sources: Sources,
        queries: Sequence[str] | None = None,
        parameters: Mapping[str, ParameterValue] | None = None,
        *,
        options: RunOptions | None = None,
        progress: Progress | None = None,
    ) -> Answers:
        """Answer the chosen queries, from the beginning or from where an earlier run was killed."""
        options, began = options or RunOptions(), time.perf_counter()
        request = _request(app, queries, parameters or {}, options)
        files = {table.name: sources.files(table) for table in app.tables}
        self._job_id = _job_id(request, files)
        self._store = BorrowingStore(self._inner, kept=options.threads + 3)
        try:
            self._prepare()
            going = _Going(self._store, self._job_id, request, files, options, progress or Silent())
            answers = going.answers()
        except _FAILED as error:
            if not isinstance(error, ChangedFileError):
                with contextlib.suppress(StoreError):
                    self.remove()
            raise
        except FormatError as error:
            raise FormatError(f"{error}; begin again with another --store") from error
        except GoneError:
            raise UsageError(
                f"another process finished the same run in {self._place} meanwhile: run it again"
            ) from None
        return replace(answers, seconds=time.perf_counter() - began)

    def remove(self) -> None:
        """Everything of the run; job.json first, so that what is left after a kill is garbage."""
        self._store.delete(job_key(self._job_id))
        self._sweep()

    def _prepare(self) -> None:
        """Refuse to go on unasked; clear away what a run that has ended left behind."""
        job_run = JobRuns(self._store).open(self._job_id)
        if job_run is None:
            self._sweep()
            return
        outcome = read_outcome(self._store, job_run.keys)
        if outcome is not None and outcome.state != "done":
            self.remove()
        elif not self._resume:
            raise UsageError(
                f"{self._place} holds an unfinished run of the same queries over the same files: "
                "add --resume to go on with it, or give another --store"
            )

    def _sweep(self) -> None:
        for entry in list(entries(self._store, f"jobs/{self._job_id}/")):
            self._store.delete(entry.key)


@dataclass
class _Going:
    """A run under way, in the thread that asked for it."""

    store: BorrowingStore
    job_id: str
    request: Request
    files: Mapping[str, Sequence[Path]]
    options: RunOptions
    progress: Progress
    wakeup: Wakeup = field(default_factory=Wakeup)

    def __post_init__(self) -> None:
        self.broker = WakeupBroker(self.wakeup)
        self.clock = WakeupClock(self.wakeup)
        self.job_runs = JobRuns(self.store)
        self.rejects = Rejects(self.options.reject_sink)

    def answers(self) -> Answers:
        limits = worker_limits(self.options)
        compute = partial(LocalCompute, limits, turns=SharedTurns())
        with WorkerThreads(self.options.threads, compute, self._ports) as self.workers:
            job_run = self._begin(limits)
            tables = tuple(self._send(job_run, table) for table in job_run.job.tables)
            sent = time.perf_counter()
            while not self._has_ended(job_run):
                self._pause()
            return self._collected(job_run, tables, time.perf_counter() - sent)

    def _begin(self, limits: SandboxLimits) -> JobRun:
        """Create the job or find it again, and publish what its store says is missing."""
        compute = LocalCompute(limits)
        try:
            gateway = JobService(self._ports(compute), secrets.token_hex(8))
            gateway.create(self.job_id, _OWNER, self.request)
        finally:
            compute.close()
        job_run = self.job_runs.open(self.job_id)
        if job_run is None:
            raise GoneError(f"there is no job {self.job_id}")
        self.gateway = gateway
        self.is_done = read_outcome(self.store, job_run.keys) is not None
        if not self.is_done:
            facts = StoreFacts(self.store, job_run.keys)
            missing = missing_tasks(job_run.shape, facts, _EVERYTHING)
            if missing:
                self.broker.publish([job_run.message(task) for task in missing])
            elif all_finished(job_run.shape, facts):
                end_done(self.store, self.clock, job_run)
        return job_run

    def _ports(self, compute: Compute) -> Ports:
        return Ports(
            store=self.store,
            broker=self.broker,
            compute=compute,
            clock=self.clock,
            new_id=partial(secrets.token_hex, 16),
            job_runs=self.job_runs,
        )

    def _send(self, job_run: JobRun, table: str) -> TableProfile:
        """One table: cut, compared or stored, ended, and followed until it is mapped."""
        files = self.files[table]
        follower = TableFollower(
            self.store, job_run, table, files, self.rejects, self.progress, self.options.strict
        )
        digests, size = [], 0
        for number, data in enumerate(self._cut(job_run, table)):
            index = batch_format.describe(frame.of_bytes(data), f"batch {number}")
            self._send_batch(job_run, index, data)
            digests.append(index.digest)
            size += index.bytes
            while self.broker.waiting_maps() > self.options.threads + 1:
                self._pause()
            follower.advance(number)
            if self.workers.raised:
                self._has_ended(job_run)
        self._send_end(table, End(len(digests), size, digest_of_digests(digests)))
        while not follower.advance(len(digests)):
            self._has_ended(job_run)
            self._pause()
        return follower.profile()

    def _send_end(self, table: str, end: End) -> None:
        try:
            self.gateway.put_end(self.job_id, _OWNER, table, end)
        except ConflictError:
            raise ChangedFileError(
                f"table {table}: a file changed since the unfinished run began: bring it back, or "
                "give another --store"
            ) from None
        except GoneError as error:
            raise self._error_of(error.outcome) if error.outcome else error from None

    def _cut(self, job_run: JobRun, table: str) -> Iterator[bytes]:
        wanted = job_run.split.table(table).cleaning.wanted.columns
        return cut_files(
            table, self.files[table], self.options.batch_bytes, columns=wanted, compress=False
        )

    def _send_batch(self, job_run: JobRun, index: batch_format.BatchHeader, data: bytes) -> None:
        """The object first, then the message; nothing of what is there already (rule 2)."""
        key = job_run.keys.batch(index.table, index.number)
        try:
            stored = self.store.head(key)
        except NotFoundError:
            if self.is_done:
                raise _changed(index) from None
            self.store.create(key, data)
            self.broker.publish([job_run.message(Task("map", index.table, index.number))])
            return
        if not stored.holds_the_same(index):
            raise _changed(index)

    def _has_ended(self, job_run: JobRun) -> bool:
        """Is everything answered? Raises what made the job fail."""
        outcome = read_outcome(self.store, job_run.keys)
        if outcome is not None and outcome.state != "done":
            raise self._error_of(outcome)
        return outcome is not None

    def _pause(self) -> None:
        """Until something happened; whatever ended a worker, the store or the job ends the run."""
        if self.store.failure is not None:
            raise self.store.failure
        if self.workers.bugs:
            raise self.workers.bugs[0]
        if self.job_runs.open(self.job_id) is None:
            raise GoneError(f"there is no job {self.job_id}")
        self.wakeup.wait(_LOOK_SECONDS)

    def _error_of(self, outcome: Outcome) -> CaudalError:
        """The error that became the outcome, as it was raised."""
        same = [error for error in self.workers.raised if str(error) == outcome.reason]
        return same[0] if same else QueryError(outcome.reason)

    def _collected(
        self, job_run: JobRun, tables: tuple[TableProfile, ...], seconds: float
    ) -> Answers:
        results, errors = {}, {}
        for query in job_run.split.queries:
            found = objects.result(self.store, job_run.keys, query.name)
            if found.index.error:
                errors[query.name] = QueryError(found.index.error)
                continue
            results[query.name] = Result(query.name, found.index.title, found.rows(), seconds)
            self.progress.query(query.name, seconds)
        return Answers(results, self.rejects, tables, failures=settled(results, errors))


def _request(
    app: Application,
    queries: Sequence[str] | None,
    parameters: Mapping[str, ParameterValue],
    options: RunOptions,
) -> Request:
    text = Text.of(replace(app, sentiment=options.sentiment or app.sentiment))
    how = Options(batch_bytes=options.batch_bytes, partitions=options.partitions)
    return Request(text, tuple(queries or ()), dict(parameters), how)


def _job_id(request: Request, files: Mapping[str, Sequence[Path]]) -> str:
    """Rule 1."""
    names = {
        table: [(str(path), str(path.absolute())) for path in paths]
        for table, paths in files.items()
    }
    return digest(msgspec.json.encode((__version__, request, names), order="deterministic"))


def _changed(index: batch_format.BatchHeader) -> ChangedFileError:
    return ChangedFileError(
        f"{index.file}: the file changed since the unfinished run began (batch {index.number} of "
        f"table {index.table}): bring it back, or give another --store"
    )
