"""What a gateway does for a client: the life of a job, one request at a time.

Rules
1. A gateway keeps nothing: any of them serves any request, and the same request may come twice.
2. Every race is decided by one create: job.json, a batch, an end, an outcome. Who comes second
   reads what is there; the same content is success, other content is a conflict.
3. First the object, then the message, then the answer. So what was confirmed to the client is
   durable and on its way, and a repeat of what was not confirmed publishes again.
4. Every request of the client, refused ones too, leaves a mark that it was heard.
5. Answers name the run: a client that sees another one knows that its job began anew.
"""

from dataclasses import dataclass

from caudal.core.readiness import after_end, at_creation
from caudal.core.tasks import Task, job_key, lane_of
from caudal.errors import AlreadyExistsError, NotFoundError
from caudal.formats import batch as batch_format
from caudal.formats import ending, merged
from caudal.formats import job as job_format
from caudal.formats.ending import End, Outcome
from caudal.formats.job import Job, Request
from caudal.kernels.hashing import HASH_VERSION
from caudal.tasks.facts import StoreFacts
from caudal.tasks.gathering import WrongEndError, check_coverage
from caudal.tasks.life import Life, end_life, exists, read_outcome
from caudal.tasks.ports import BusyError, ConflictError, GoneError
from caudal.tasks.requests import check_job_id, check_request
from caudal.tasks.status import Status, status_of
from caudal.tasks.tools import Tools
from caudal.version import __version__

_MARKS = 4  # per time of silence: how often a client that is heard is noted down


@dataclass(frozen=True)
class Receipt:
    """What a gateway confirms: the run, and the tables that the client must send."""

    run: str
    tables: tuple[str, ...]


class Gateway:
    """The requests of clients. `name` is unlike that of every other gateway process."""

    def __init__(self, tools: Tools, name: str) -> None:
        self._tools = tools
        self._name = name

    def create(self, job_id: str, owner: str, request: Request) -> Receipt:
        """Validate, plan and create a job; the same request again gives the same job."""
        check_job_id(job_id)
        check_request(request)
        life = self._tools.lives.open(job_id)
        if life is None:
            life = self._create(job_id, owner, request)
        self._check_owner(life, job_id, owner)
        if life.job.request_digest != job_format.request_digest(request):
            raise ConflictError(f"job {job_id} exists with another content: choose another id")
        self._hear(life)
        self._publish(life, at_creation(life.shape))
        return Receipt(life.job.run, life.job.tables)

    def put_batch(self, job_id: str, owner: str, data: bytes) -> Receipt:
        """Store a batch and publish its map task; the same batch again publishes again."""
        life = self._running(job_id, owner)
        index, _ = batch_format.decode(data, "the batch")
        self._refuse_when_full(Task("map", index.table, index.number))
        self._check_table(life, index.table)
        end = StoreFacts(self._tools.store, life.keys).end(index.table)
        if end is not None and index.number >= end:
            raise ConflictError(
                f"table {index.table} has ended with {end} batches: there is no batch "
                f"{index.number} of it"
            )
        self._create_batch(life, index, data)
        self._publish(life, [Task("map", index.table, index.number)])
        return Receipt(life.job.run, life.job.tables)

    def put_end(self, job_id: str, owner: str, table: str, end: End) -> Receipt:
        """Say that a table is sent, and publish what may run now."""
        life = self._running(job_id, owner)
        self._check_table(life, table)
        store, key = self._tools.store, life.keys.end(table)
        try:
            store.create(key, ending.encode_end(end))
        except AlreadyExistsError:
            first = ending.decode_end(store.read(key), key)
            if first != end:
                raise ConflictError(
                    f"table {table} has ended with {first.batches} batches of {first.bytes} "
                    f"bytes; this end says {end.batches} of {end.bytes}, or other content"
                ) from None
        if self._covers_too_much(life, table, end):
            raise self._gone(job_id, read_outcome(store, life.keys))
        self._publish(life, after_end(table, life.shape, StoreFacts(store, life.keys)))
        return Receipt(life.job.run, life.job.tables)

    def stored_digest(self, job_id: str, owner: str, table: str, number: int) -> str | None:
        """The digest of a batch's records, if it has arrived: for a client that resumes."""
        life = self._running(job_id, owner)
        self._check_table(life, table)
        key = life.keys.batch(table, number)
        store = self._tools.store
        try:
            return batch_format.describe(lambda *at: store.read(key, *at), key).digest
        except NotFoundError:
            return None

    def status(self, job_id: str, owner: str) -> Status:
        """How far a job has come, and how it ended."""
        life = self._life(job_id, owner)
        return status_of(self._tools.store, life)

    def result(self, job_id: str, owner: str, query: str) -> bytes:
        """The rows of a query (formats/outputs.py), as soon as they are there."""
        life = self._life(job_id, owner)
        if query not in life.shape.finishes:
            raise ConflictError(f"job {job_id} has no query {query!r}")
        try:
            return self._tools.store.read(life.keys.output(Task("finish", query)))
        except NotFoundError:
            raise GoneError(f"job {job_id} has no result of {query} (yet)") from None

    def cancel(self, job_id: str, owner: str) -> Outcome:
        """End a job, unless it has ended already; gives how it ended."""
        life = self._life(job_id, owner)
        reason = "the client cancelled it"
        return end_life(self._tools.store, self._tools.clock, life.keys, "cancelled", reason)

    def _create(self, job_id: str, owner: str, request: Request) -> Life:
        now = self._tools.clock.now()
        planned = self._tools.compute.plan(request, now)
        job = Job(
            id=job_id,
            run=self._tools.new_id(),
            owner=owner,
            created=now,
            request=request,
            request_digest=job_format.request_digest(request),
            tables=planned.tables,
            plan=job_format.raw(planned.plan),
            versions={"caudal": __version__, "hash": str(HASH_VERSION)},
        )
        try:
            self._tools.store.create(job_key(job_id), job_format.encode(job))
        except AlreadyExistsError:
            life = self._tools.lives.open(job_id)
            if life is None:
                raise self._gone(job_id) from None
            return life
        return Life.of(job)

    def _create_batch(self, life: Life, index: batch_format.Batch, data: bytes) -> None:
        store, key = self._tools.store, life.keys.batch(index.table, index.number)
        try:
            store.create(key, data)
        except AlreadyExistsError:
            first = batch_format.describe(lambda *at: store.read(key, *at), key)
            if not first.holds_the_same(index):
                raise ConflictError(
                    f"batch {index.number} of table {index.table} has arrived with other "
                    "content: the file changed; send it under a new job"
                ) from None

    def _covers_too_much(self, life: Life, table: str, end: End) -> bool:
        """Does the last group hold more than the end names? Then the job fails."""
        last = life.shape.group_count(end.batches) - 1
        key = life.keys.output(Task("merge", table, last))
        if last < 0 or not exists(self._tools.store, key):
            return False
        try:
            check_coverage(merged.decode(self._tools.store.read(key), key), end)
        except WrongEndError as error:
            end_life(self._tools.store, self._tools.clock, life.keys, "failed", str(error))
            return True
        return False

    def _life(self, job_id: str, owner: str) -> Life:
        life = self._tools.lives.open(job_id)
        if life is None:
            raise self._gone(job_id)
        self._check_owner(life, job_id, owner)
        self._hear(life)
        return life

    def _running(self, job_id: str, owner: str) -> Life:
        life = self._life(job_id, owner)
        outcome = read_outcome(self._tools.store, life.keys)
        if outcome is not None:
            raise self._gone(job_id, outcome)
        return life

    def _check_owner(self, life: Life, job_id: str, owner: str) -> None:
        if life.job.owner != owner:
            raise self._gone(job_id)  # whether it exists is nobody else's business

    def _gone(self, job_id: str, outcome: Outcome | None = None) -> GoneError:
        if outcome is None:
            return GoneError(f"there is no job {job_id}")
        why = f": {outcome.reason}" if outcome.reason else ""
        return GoneError(f"job {job_id} is {outcome.state}{why}", outcome)

    def _check_table(self, life: Life, table: str) -> None:
        if table not in life.shape.tables:
            raise ConflictError(
                f"no query of job {life.job.id} reads a table {table!r}; it reads: "
                f"{', '.join(life.shape.tables) or 'none'}"
            )

    def _refuse_when_full(self, task: Task) -> None:
        if self._tools.broker.depths()[lane_of(task)] >= self._tools.bounds.lane_limit:
            raise BusyError("too many batches are waiting to be read: try again in a moment")

    def _hear(self, life: Life) -> None:
        """Leave a mark, at most a few in the time after which a client counts as silent."""
        slot = int(self._tools.clock.now() * _MARKS / life.job.request.options.silent_seconds)
        mark = f"{life.keys.seen()}{slot:010}-{self._name}"
        self._tools.store.create(mark, b"heard")

    def _publish(self, life: Life, tasks: list[Task]) -> None:
        if tasks:
            self._tools.broker.publish([life.message(task) for task in tasks])
