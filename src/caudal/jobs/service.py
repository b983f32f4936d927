"""The requests of a client to a gateway, from the creation of a job to its deletion.

Rules
1. A gateway keeps no state. Any gateway serves any request, and the same request may come twice.
2. One create decides every race: of job.json, a batch, an end, or an outcome. The process that
   comes second reads the existing object. The same content is success, other content a conflict.
3. The order is: create the object, publish the message, answer the client. So everything that was
   confirmed to the client is durable and published. Repeating an unconfirmed request publishes
   again.
4. Every request of the client, even a refused one, leaves a mark in the store: the client is alive.
5. Answers name the run. A client that sees another run knows that its job was started again.

Thread-safe.
"""

import contextlib
from dataclasses import dataclass

import msgspec

from caudal.errors import AlreadyExistsError, NotFoundError, UsageError
from caudal.formats import batch as batch_format
from caudal.formats import job as job_format
from caudal.formats import outcomes
from caudal.formats.job import Job, Request
from caudal.formats.keys import MOST_GROUPS, Task, job_key
from caudal.formats.outcomes import End, Outcome, end_of
from caudal.formats.replies import JobPage, JobStatus, Receipt
from caudal.jobs import objects
from caudal.jobs.derived_ids import check_whose
from caudal.jobs.inputs import WrongEndError, check_coverage
from caudal.jobs.interfaces import (
    BusyError,
    ConflictError,
    GoneError,
    NotReadyError,
    UnknownNameError,
)
from caudal.jobs.janitor import delete_ended
from caudal.jobs.job_index import enrol
from caudal.jobs.job_list import jobs_of
from caudal.jobs.lane_shares import has_room
from caudal.jobs.load_requests import check_load, place_of
from caudal.jobs.ports import Ports
from caudal.jobs.preview import Preview
from caudal.jobs.readiness import after_end, at_creation
from caudal.jobs.requests import (
    check_batch,
    check_job_id,
    check_request,
    check_same_end,
    check_sentiment,
    described,
    identity,
)
from caudal.jobs.runs import JobRun, end_run, read_outcome
from caudal.jobs.shared_maps import facts_of
from caudal.jobs.so_far import GrowingQuery
from caudal.jobs.status import small_results, status_of
from caudal.jobs.stored_results import StoredResult

_MARKS = 4  # marks of an active client in the time after which it counts as silent
_MARKED = 1024  # most jobs for which a gateway remembers its last mark


@dataclass(frozen=True)
class Admission:
    """The permission to send a batch, given before its bytes are read."""

    job_run: JobRun
    table: str
    number: int


class JobService:
    """The requests of clients. `name` is unique among all gateway processes that ever were."""

    def __init__(self, ports: Ports, name: str) -> None:
        self._ports = ports
        self._name = name
        self._marked: dict[tuple[str, str], int] = {}

    def create(self, job_id: str, owner: str, request: Request) -> Receipt:
        """Validate, plan and create a job. The same request again returns the same job."""
        if request.dataset:
            raise UsageError("a job cannot name the objects of a dataset: ask the dataset instead")
        return self.create_checked(job_id, owner, request)

    def create_checked(self, job_id: str, owner: str, request: Request) -> Receipt:
        """Do the same as create, for a request whose dataset the owner may read."""
        check_job_id(job_id)
        check_whose(job_id, owner)
        check_request(request)
        check_load(request)
        check_sentiment(request, self._ports.bounds.sentiments)
        found = self._ports.job_runs.open(job_id)
        job_run = found or self._create(job_id, owner, request)
        self._check_owner(job_run, job_id, owner)
        if job_run.job.request_digest != identity(request):
            raise ConflictError(f"job {job_id} exists with another content: choose another id")
        if self._ports.bounds.indexed:
            enrol(self._ports.store, job_run.job)
        self._hear(job_run)
        self._publish(job_run, at_creation(job_run.shape))
        return Receipt(job_run.job.run, job_run.job.tables, new=found is None)

    def put_batch(self, job_id: str, owner: str, data: bytes, *, only: bool = False) -> Receipt:
        """Store a batch and publish its map task. The same batch again publishes again.

        With `only`, it is the only batch of its table, which ends with it.
        """
        job_run = self._running(job_id, owner)
        index = described(data)
        self._check_wanted(job_run, index.table, index.number)
        return self.put_admitted(Admission(job_run, index.table, index.number), data, only=only)

    def admit(self, job_id: str, owner: str, table: str, number: int) -> Admission:
        """Check that this batch may be sent. Asking first can save sending its bytes."""
        job_run = self._running(job_id, owner)
        self._check_wanted(job_run, table, number)
        return Admission(job_run, table, number)

    def put_admitted(self, admission: Admission, data: bytes, *, only: bool = False) -> Receipt:
        """Do the same as put_batch, for an admitted batch.

        Changes since the admission do no harm: a batch of a run that is over is never read, and a
        batch beyond the end is ignored.
        """
        job_run, index = admission.job_run, described(data)
        if (index.table, index.number) != (admission.table, admission.number):
            raise UsageError(
                f"this is batch {index.number} of table {index.table!r}, not batch "
                f"{admission.number} of {admission.table!r}"
            )
        if only and index.number:
            raise UsageError(f"batch {index.number} of a table cannot be its only one")
        check_batch(data, index, self._ports.bounds.batch_bytes)
        if only:  # first, so that the worker that maps it knows it and goes on (taken_along.py)
            self._store_end(job_run, index.table, end_of([(index.digest, index.bytes)]))
        new = self._create_batch(job_run, index, data)
        task = Task("map", index.table, index.number)
        self._publish(job_run, [task])
        self._ports.loads.sent(job_run.job.owner, job_run.message(task).lane)
        return Receipt(job_run.job.run, job_run.job.tables, new=new, ended=only)

    def put_end(self, job_id: str, owner: str, table: str, end: End) -> Receipt:
        """Store the end of a table, and publish the tasks that became ready.

        If the job is done, only compare the end with the stored one. A client that resumes late,
        or whose first answer was lost, learns in this way that the table was the same.
        """
        job_run = self._job_run(job_id, owner)
        self._check_table(job_run, table)
        store = self._ports.store
        outcome = read_outcome(store, job_run.keys)
        if outcome is not None:
            first = facts_of(store, job_run).ending(table)
            if outcome.state != "done" or first is None:
                raise self._gone(job_id, outcome)
            check_same_end(table, first, end)
            return Receipt(job_run.job.run, job_run.job.tables, new=False)
        new = self._store_end(job_run, table, end)
        return Receipt(job_run.job.run, job_run.job.tables, new=new)

    def _store_end(self, job_run: JobRun, table: str, end: End) -> bool:
        """Store the end of a table, and publish the tasks that became ready; return whether it is
        new. (Two requests at once may both get True.)"""
        store, key = self._ports.store, job_run.keys.end(table)
        new = not objects.exists(store, key)
        try:
            store.create(key, outcomes.encode_end(end))
        except AlreadyExistsError:
            check_same_end(table, objects.end(store, job_run.keys, table), end)
        if self._covers_too_much(job_run, table, end):
            raise self._gone(job_run.job.id, read_outcome(store, job_run.keys))
        self._publish(job_run, after_end(table, job_run.shape, facts_of(store, job_run)))
        return new

    def stored_digest(self, job_id: str, owner: str, table: str, number: int) -> str | None:
        """Return the digest of a batch's records if it has arrived, for a client that resumes."""
        job_run = self._running(job_id, owner)
        self._check_table(job_run, table)
        self._check_number(job_run, number)
        try:
            return objects.batch_head(self._ports.store, job_run.keys, table, number).digest
        except NotFoundError:
            return None

    def status(
        self, job_id: str, owner: str, *, quiet: bool = False, small: bool = False
    ) -> JobStatus:
        """Return the progress of a job, and its outcome if it has ended.

        `quiet`: somebody else than the client asks, so this is no sign of life of the client.
        `small`: the client wants the small results with it.
        """
        job_run = self.seen(job_id, owner) if quiet else self._job_run(job_id, owner)
        status = status_of(self._ports.store, job_run)
        if not small:
            return status
        found = small_results(self._ports.store, job_run, status.results)
        return msgspec.structs.replace(status, small=found)

    def result(self, job_id: str, owner: str, query: str, run: str) -> bytes:
        """Return the result of a query in that run (formats/outputs.py), once it exists."""
        found = self.open_result(job_id, owner, query)
        if found.index.run != run:
            raise GoneError(f"job {job_id} ended and was started again: send it again")
        return found.whole()

    def open_result(self, job_id: str, owner: str, query: str) -> StoredResult:
        """Return the result of a query without reading its rows."""
        job_run = self._job_run(job_id, owner)
        if query not in job_run.shape.finishes:
            raise UnknownNameError("query", f"job {job_id} has no query {query!r}")
        store = self._ports.store
        with contextlib.suppress(NotFoundError):
            return objects.result(store, job_run.keys, query)
        outcome = read_outcome(store, job_run.keys)
        if outcome is None:
            raise NotReadyError(f"job {job_id} has no result of {query} yet: ask again later")
        try:  # it may have been created just before the outcome
            return objects.result(store, job_run.keys, query)
        except NotFoundError:
            raise self._gone(job_id, outcome) from None

    def jobs(self, owner: str, after: str = "", limit: int = 100) -> JobPage:
        """Return a page of the owner's jobs, the newest first, from behind `after`."""
        return jobs_of(self._ports.store, owner, after, limit)

    def watch(self, job_id: str, owner: str) -> JobRun:
        """Return the current run, for repeated calls of `look`, which leave no mark."""
        return self._job_run(job_id, owner)

    def look(self, job_run: JobRun) -> JobStatus:
        """Return the status of a watched run. Raise GoneError if another run replaced it."""
        now = self._ports.job_runs.open(job_run.job.id)
        if now is None or now.job.run != job_run.job.run:
            raise self._gone(job_run.job.id)
        return status_of(self._ports.store, job_run)

    def has_news(self, job_run: JobRun, results: int) -> bool:
        """Return whether a watched run has an outcome or another number of results.

        A run that has all its results has no news before its outcome, which follows at once.
        """
        store = self._ports.store
        if objects.exists(store, job_run.keys.outcome):
            return True
        found = len(facts_of(store, job_run).finished())
        return found not in (results, len(job_run.shape.finishes))

    def preview(self, job_id: str, owner: str, query: str) -> Preview:
        """Return the preview of a query that only filters: its rows, batch by batch."""
        job_run = self._job_run(job_id, owner)
        if query not in job_run.shape.finishes:
            raise UnknownNameError("query", f"job {job_id} has no query {query!r}")
        return Preview.of(self._ports, job_run, query)

    def growing(self, job_id: str, owner: str, query: str) -> GrowingQuery:
        """Return a query that shows rows of its answer early. Leaves no mark, like `seen`."""
        job_run = self.seen(job_id, owner)
        if query not in job_run.shape.finishes:
            raise UnknownNameError("query", f"job {job_id} has no query {query!r}")
        return GrowingQuery.of(self._ports, job_run, query)

    def cancel(self, job_id: str, owner: str) -> Outcome:
        """End a job unless it has ended already; return its outcome."""
        job_run = self._job_run(job_id, owner)
        ports, reason = self._ports, "the client cancelled it"
        return end_run(ports.store, ports.clock, job_run.keys, "cancelled", reason)

    def delete(self, job_id: str, owner: str) -> Outcome:
        """Delete everything that is stored of an ended job; return its outcome."""
        job_run = self._job_run(job_id, owner)
        outcome = read_outcome(self._ports.store, job_run.keys)
        if outcome is None:
            raise ConflictError(f"job {job_id} runs: cancel it first")
        delete_ended(self._ports, job_run)
        return outcome

    def _create(self, job_id: str, owner: str, request: Request) -> JobRun:
        now = self._ports.clock.now()
        planned = self._ports.compute.plan(request, now)
        same, request = identity(request), self._granted(request)
        job = Job(
            id=job_id,
            run=self._ports.new_id(),
            owner=owner,
            created=now,
            request=request,
            request_digest=same,
            tables=planned.tables,
            plan=job_format.raw(planned.plan),
            versions=dict(self._ports.compute.versions),
            load=place_of(self._ports.store, owner, request, planned.plan),
        )
        created = JobRun.of(job)
        job = msgspec.structs.replace(job, behind=self._is_behind(owner, created))
        try:
            self._ports.store.create(job_key(job_id), job_format.encode(job))
        except AlreadyExistsError:
            job_run = self._ports.job_runs.open(job_id)
            if job_run is None:
                raise self._gone(job_id) from None
            return job_run
        self._ports.loads.created(owner, created.keys)
        return JobRun.of(job)

    def _is_behind(self, owner: str, job_run: JobRun) -> bool:
        """Return whether its tasks go to the slow lane.

        One request creates all fold tasks at once. Partitions times folds of them would delay the
        tasks of all other owners.
        """
        bounds = self._ports.bounds
        folds = sum(one.partitions for one in job_run.shape.folds.values())
        if folds > bounds.folds_most:
            raise UsageError(
                f"{folds} fold tasks are too many, at most {bounds.folds_most} are allowed: ask "
                "for fewer partitions, or send the queries in several jobs"
            )
        return folds > bounds.folds_ahead or self._has_jobs(owner, bounds.jobs_ahead)

    def _has_jobs(self, owner: str, count: int) -> bool:
        """Return whether at least so many jobs of an owner run. Look only if there may be."""
        jobs, running = self._ports.loads.jobs(owner), 0
        if len(jobs) < count:
            return False
        for one in jobs:
            if objects.exists(self._ports.store, one.outcome):
                self._ports.loads.ended(owner, one)
            else:
                running += 1
            if running >= count:
                return True
        return False

    def _granted(self, request: Request) -> Request:
        least, most = self._ports.bounds.silence_seconds
        seconds = min(max(request.options.silent_seconds, least), most)
        options = msgspec.structs.replace(request.options, silent_seconds=seconds)
        return msgspec.structs.replace(request, options=options)

    def _create_batch(self, job_run: JobRun, index: batch_format.BatchHeader, data: bytes) -> bool:
        """Store a batch; return whether it is new. (Two requests at once may both get True.)"""
        store, key = self._ports.store, job_run.keys.batch(index.table, index.number)
        new = not objects.exists(store, key)
        try:
            if new:
                store.create(key, data)
        except AlreadyExistsError:
            new = False
        if not new:
            first = objects.batch_head(store, job_run.keys, index.table, index.number)
            if not first.holds_the_same(index):
                raise ConflictError(
                    f"batch {index.number} of table {index.table} has arrived with other "
                    "content: the file changed; send it under a new job"
                )
        return new

    def _covers_too_much(self, job_run: JobRun, table: str, end: End) -> bool:
        """Fail the job if the last group holds more batches than the end names; return that."""
        last = job_run.shape.group_count(end.batches) - 1
        key = job_run.keys.output(Task("merge", table, last))
        if last < 0 or not objects.exists(self._ports.store, key):
            return False
        try:
            check_coverage(objects.merged_group(self._ports.store, job_run.keys, table, last), end)
        except WrongEndError as error:
            end_run(self._ports.store, self._ports.clock, job_run.keys, "failed", str(error))
            return True
        return False

    def seen(self, job_id: str, owner: str) -> JobRun:
        """Return the current run, without a mark that the client was heard."""
        check_job_id(job_id)
        job_run = self._ports.job_runs.open(job_id)
        if job_run is None:
            raise self._gone(job_id)
        self._check_owner(job_run, job_id, owner)
        return job_run

    def _job_run(self, job_id: str, owner: str) -> JobRun:
        job_run = self.seen(job_id, owner)
        self._hear(job_run)
        return job_run

    def _running(self, job_id: str, owner: str) -> JobRun:
        job_run = self._job_run(job_id, owner)
        outcome = read_outcome(self._ports.store, job_run.keys)
        if outcome is not None:
            raise self._gone(job_id, outcome)
        return job_run

    def _check_owner(self, job_run: JobRun, job_id: str, owner: str) -> None:
        if job_run.job.owner != owner:
            raise self._gone(job_id)  # other owners must not learn that it exists

    def _gone(self, job_id: str, outcome: Outcome | None = None) -> GoneError:
        if outcome is None:
            return GoneError(f"there is no job {job_id}")
        why = f": {outcome.reason}" if outcome.reason else ""
        return GoneError(f"job {job_id} is {outcome.state}{why}", outcome)

    def _check_wanted(self, job_run: JobRun, table: str, number: int) -> None:
        self._check_table(job_run, table)
        self._check_number(job_run, number)
        self._refuse_when_full(job_run, Task("map", table, number))
        end = facts_of(self._ports.store, job_run).end(table)
        if end is not None and number >= end:
            raise ConflictError(
                f"table {table} has ended with {end} batches: there is no batch {number} of it"
            )

    def _check_number(self, job_run: JobRun, number: int) -> None:
        most = job_run.shape.group * MOST_GROUPS
        if not 0 <= number < most:
            raise UsageError(f"{number} is not a batch number: they go from 0 to {most - 1}")

    def _check_table(self, job_run: JobRun, table: str) -> None:
        if table not in job_run.shape.tables:
            raise UnknownNameError(
                "table",
                f"no query of job {job_run.job.id} reads a table {table!r}; it reads: "
                f"{', '.join(job_run.shape.tables) or 'none'}",
            )

    def _refuse_when_full(self, job_run: JobRun, task: Task) -> None:
        lane, limit = job_run.message(task).lane, self._ports.bounds.lane_limit
        mine, owners = self._ports.loads.waiting(job_run.job.owner, lane)
        if not has_room(mine, owners, self._ports.broker.depths()[lane], limit):
            raise BusyError("too many batches are waiting to be read: try again in a moment")

    def _hear(self, job_run: JobRun) -> None:
        """Leave a mark, at most `_MARKS` in the time after which a client counts as silent. A job
        that has ended needs none, and a janitor may not look at it for long.

        Only new marks count. The wall clock may be set back, and would give old ones again.
        """
        name = job_run.job.id, job_run.job.run
        silent = job_run.job.request.options.silent_seconds
        slot = int(self._ports.clock.elapsed() * _MARKS / silent)
        if self._marked.get(name) == slot:
            return
        if not objects.exists(self._ports.store, job_run.keys.outcome):
            key = f"{job_run.keys.seen()}{slot:010}-{self._name}"
            self._ports.store.create(key, b"heard", lasting=False)
        if len(self._marked) >= _MARKED:
            self._marked = {}  # costs only one more create of an existing mark per job
        self._marked[name] = slot

    def _publish(self, job_run: JobRun, tasks: list[Task]) -> None:
        if tasks:
            self._ports.broker.publish([job_run.message(task) for task in tasks])
