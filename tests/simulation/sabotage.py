"""Ways to break the code on purpose. Each must be caught by the simulation.

A sabotage replaces one function of production code while a run lasts. What it breaks is said in
the words of the rule that it violates.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from caudal.broker.port import BrokerError, Consumer, Delivery
from caudal.errors import AlreadyExistsError, NotFoundError
from caudal.formats import batch as batch_format
from caudal.formats import frame, mapped, merged, outcomes
from caudal.formats.job import Job
from caudal.formats.keys import Message, Task, job_key
from caudal.jobs import beat, execute, janitor, reconciler, service, upload
from caudal.jobs import inputs as gathering
from caudal.jobs.beat import TaskBeat
from caudal.jobs.events import TaskReport
from caudal.jobs.facts import StoreFacts
from caudal.jobs.interfaces import CondemnedError, ConflictError, NotNowError
from caudal.jobs.job_index import Mark
from caudal.jobs.objects import exists
from caudal.jobs.ports import Ports
from caudal.jobs.readiness import follow_up
from caudal.jobs.runs import JobRun, stage_of
from caudal.jobs.taken_along import HeldDelivery
from caudal.store.memory import MemoryStore
from tests.simulation.adapters import SimulatedBroker
from tests.simulation.stories import KINDS

Patch = Callable[[], contextlib.AbstractContextManager[Any]]


@dataclass(frozen=True)
class Sabotage:
    """What to break, and in which stories it must show."""

    patch: Patch
    kinds: Sequence[str] = KINDS
    known: int = 0  # a seed that catches it


SABOTAGES: dict[str, Sabotage] = {}
PLAIN = ("plain",)


def sabotage(name: str, kinds: Sequence[str] = KINDS, known: int = 0) -> Callable[[Patch], Patch]:
    def register(broken: Patch) -> Patch:
        SABOTAGES[name] = Sabotage(broken, kinds, known)
        return broken

    return register


def _turn(ports: Ports, found: JobRun, delivery: Delivery) -> execute.TaskTurn:
    held, message = HeldDelivery(ports, delivery), delivery.message
    return execute.TaskTurn(held, found, TaskReport(delivery), TaskBeat(ports, found, message))


@contextlib.contextmanager
def without_reconciler() -> Iterator[None]:
    """Most sabotages break what the reconciler would mend later: then only its absence shows."""
    with mock.patch.object(reconciler.Reconciler, "_publish", _nothing):
        yield


@sabotage("acknowledge before publish", PLAIN, known=0)
def acknowledge_first() -> Any:
    def handle(ports: Ports, consumer: Consumer, delivery: Delivery) -> execute.TurnResult:
        consumer.acknowledge(delivery)
        message = delivery.message
        with contextlib.suppress(*execute.PASSING):
            found = ports.job_runs.running(message)
            if found is not None:
                present = exists(ports.store, found.keys.output(message.task))
                if present or execute._make(_turn(ports, found, delivery)):
                    execute.follow(HeldDelivery(ports, delivery), found, message.task)
        return execute.TurnResult.ACKNOWLEDGED

    return calmly(mock.patch.object(execute, "execute_task", handle))


@sabotage("readiness checked before create", PLAIN, known=1)
def readiness_first() -> Any:
    ready: dict[int, list[Task]] = {}
    make = execute._make

    def early(turn: execute.TaskTurn) -> execute.Made:
        facts = StoreFacts(turn.ports.store, turn.job_run.keys)
        ready[id(turn.ports)] = follow_up(turn.task, turn.job_run.shape, facts)
        return make(turn)

    def follow(held: HeldDelivery, found: JobRun, task: Task) -> None:
        tasks = ready.pop(id(held.ports), [])
        if tasks:
            held.ports.broker.publish([found.message(one) for one in tasks])

    return calmly(mock.patch.multiple(execute, _make=early, follow=follow))


@sabotage("create replaced by overwrite", known=13)
def overwrite() -> Any:
    def create(self: MemoryStore, key: str, data: bytes, *, lasting: bool = True) -> None:
        self.replace(key, data)

    return mock.patch.object(MemoryStore, "create", create)


@sabotage("end count not compared: whatever was merged is read", known=137)
def end_count_not_compared() -> Any:
    return _both(
        mock.patch.multiple(gathering, check_coverage=_nothing, table_members=_unchecked_members),
        mock.patch.object(service, "check_coverage", _nothing),
    )


@sabotage("a second, different end is confirmed", ("short", "other"), known=1)
def second_end_confirmed() -> Any:
    return mock.patch.object(service, "check_same_end", _nothing)


@sabotage("digest of the table not compared", known=137)
def digest_not_compared() -> Any:
    return mock.patch.object(gathering, "table_members", _unchecked_members)


def _unchecked_members(store: Any, found: JobRun, table: str) -> list[merged.MergedMember]:
    end = StoreFacts(store, found.keys).ending(table)
    if end is None:
        raise NotFoundError(table)
    members: list[merged.MergedMember] = []
    for group in range(found.shape.group_count(end.batches)):
        key = found.keys.output(Task("merge", table, group))
        members += merged.decode(store.read(key), key).members
    return members


@sabotage("own write reported as AlreadyExists treated as foreign", known=14)
def own_write_is_foreign() -> Any:
    def create_batch(
        self: Any, found: JobRun, index: batch_format.BatchHeader, data: bytes
    ) -> bool:
        key = found.keys.batch(index.table, index.number)
        try:
            self._ports.store.create(key, data)
        except AlreadyExistsError:
            raise ConflictError("somebody else sent it") from None
        return True

    return mock.patch.object(service.JobService, "_create_batch", create_batch)


@sabotage("cleaner deletes the outcome before job.json", known=613)
def outcome_first() -> Any:
    def clean(self: Any, found: JobRun, outcome: outcomes.Outcome, mark: Mark) -> None:
        keys = found.keys
        self._delete(f"{keys.root}/", but=(keys.results(), keys.outcome))
        if self._ports.clock.now() - outcome.at < found.job.request.options.keep_seconds:
            return
        self._ports.store.delete(keys.outcome)
        self._delete(keys.results())
        self._ports.store.delete(job_key(found.job.id))

    return mock.patch.object(janitor.Janitor, "_clean_ended", clean)


@sabotage("cleaner deletes job.json first, with the data")
def job_first() -> Any:
    def clean(self: Any, found: JobRun, outcome: outcomes.Outcome, mark: Mark) -> None:
        self._ports.store.delete(job_key(found.job.id))
        self._delete(f"{found.keys.root}/", but=(found.keys.results(), found.keys.outcome))

    return mock.patch.object(janitor.Janitor, "_clean_ended", clean)


@sabotage("cleaner deletes data as soon as results exist, without an outcome", known=1)
def data_without_outcome() -> Any:
    def clean(self: Any, mark: Mark) -> None:
        found = self._ports.job_runs.open(mark.job)
        if found is not None:
            facts = StoreFacts(self._ports.store, found.keys)
            if facts.finished():
                keys = found.keys
                self._delete(f"{keys.root}/", but=(keys.results(), keys.outcome))

    return mock.patch.object(janitor.Janitor, "_clean", clean)


@sabotage("janitor reads job.json a round before it lists", ("again",), known=1)
def read_before_list() -> Any:
    read: dict[tuple[int, str], str | None] = {}
    clean = janitor.Janitor._clean_runs

    def stale(self: Any, job_id: str) -> Any:
        before = read.get((id(self), job_id))
        found = self._ports.job_runs.open(job_id)
        read[id(self), job_id] = found.job.run if found else None
        for run in list(janitor.run_names(self._ports.store, job_id)):
            if before is not None and run != before:
                self._delete(f"jobs/{job_id}/{run}/")
        return clean(self, job_id)

    return mock.patch.object(janitor.Janitor, "_clean_runs", stale)


@sabotage("no sweep: runs that job.json does not name stay", known=24)
def no_sweep() -> Any:
    return mock.patch.object(janitor, "run_names", _no_names)


@sabotage("reconciler off with lost messages", known=3)
def reconciler_off() -> Any:
    return without_reconciler()


@sabotage("a hint that drops too much: made of a part of its stage", known=6)
def greedy_hint() -> Any:
    hint_parts = gathering._hint_parts

    def fewer(store: Any, found: JobRun, stage: str) -> Any:
        parts = hint_parts(store, found, stage)
        return parts[:1] if parts else parts

    return mock.patch.object(gathering, "_hint_parts", fewer)


@sabotage("a hint made of a table that is not complete", known=115)
def early_hint() -> Any:
    """Whatever is merged by now is taken for the whole."""

    def table_members(store: Any, found: JobRun, table: str) -> list[merged.MergedMember]:
        members: list[merged.MergedMember] = []
        for number in StoreFacts(store, found.keys).merged(table):
            key = found.keys.output(Task("merge", table, number))
            members += merged.decode(store.read(key), key).members
        return members

    def parts(store: Any, found: JobRun, stage: str) -> Any:
        gathered, scan = gathering._Gathered(store, found), stage_of(found, stage)
        if scan is not None:
            gathered._members[scan.table] = table_members(store, found, scan.table)
        return gathered.parts(stage)

    return mock.patch.object(gathering, "_hint_parts", parts)


@sabotage("a slice of the inputs is left out", known=3)
def slice_left_out() -> Any:
    parts = gathering._Gathered.parts

    def fewer(self: Any, stage: str, only: int | None = None) -> Any:
        found = parts(self, stage, only)
        return replace(found, places=found.places[:-1]) if len(found) > 2 else found

    return mock.patch.object(gathering._Gathered, "parts", fewer)


@sabotage("mixed attempts: a loser goes on with its own output", known=30)
def mixed_attempts() -> Any:
    """A merge that remembers the index which this worker computed, not the one that was stored."""
    own: dict[str, bytes] = {}
    make = execute._make

    def remember(turn: execute.TaskTurn) -> execute.Made:
        ports, found, task, deliveries = turn.ports, turn.job_run, turn.task, turn.deliveries
        if task.kind != "map":
            return make(turn)
        key = found.keys.output(task)
        try:
            inputs = gathering.gather(ports.store, found, task)
            own[key] = ports.compute.run(found.job, task, inputs, deliveries)
        except execute.DETERMINISTIC:
            return make(turn)
        with contextlib.suppress(AlreadyExistsError):
            ports.store.create(key, own[key])
        return execute.Made.HERE

    def reader(store: Any, key: str) -> frame.Read:
        def read(offset: int, length: int) -> bytes:
            stored: bytes = store.read(key, offset, length)
            whole = own.get(key)
            return stored if whole is None or offset > 60 else whole[offset : offset + length]

        return read

    return mock.patch.multiple(execute, _make=remember, merge_group=_merge_with(reader))


def _merge_with(reader: Callable[[Any, str], frame.Read]) -> Any:
    def merge_group(store: Any, found: JobRun, task: Task) -> bytes:
        size = found.shape.group
        first = task.number * size
        end = StoreFacts(store, found.keys).end(task.name)
        last = first + size if end is None else min(first + size, end)
        members = []
        for number in range(first, last):
            key = found.keys.mapped(task.name, number)
            index, body = frame.decode(reader(store, key), mapped.MAGIC, mapped.Index, key)
            members.append(merged.MergedMember(index, body))
        return merged.encode(merged.Merged(task.name, first, tuple(members)))

    return merge_group


@sabotage("a group object seen but not followed up after a crash", PLAIN, known=5)
def no_follow_up_when_present() -> Any:
    def handle(ports: Ports, consumer: Consumer, delivery: Delivery) -> execute.TurnResult:
        message = delivery.message
        try:
            found = ports.job_runs.running(message)
            present = found is None or exists(ports.store, found.keys.output(message.task))
            if found and not present:
                execute._make(_turn(ports, found, delivery))
                execute.follow(HeldDelivery(ports, delivery), found, message.task)
        except execute.PASSING:
            consumer.hand_back(delivery)
            return execute.TurnResult.HANDED_BACK
        consumer.acknowledge(delivery)
        return execute.TurnResult.ACKNOWLEDGED

    return calmly(mock.patch.object(execute, "execute_task", handle))


@sabotage("an old run's objects adopted: one run for all lives", ("again",), known=1)
def one_run() -> Any:
    def job(**fields: Any) -> Job:
        return Job(**{**fields, "run": "life"})

    return mock.patch.object(service, "Job", job)


@sabotage("inputs taken from a listing", known=137)
def inputs_from_listing() -> Any:
    def table_members(store: Any, found: JobRun, table: str) -> list[merged.MergedMember]:
        members: list[merged.MergedMember] = []
        for number in StoreFacts(store, found.keys).merged(table):
            key = found.keys.output(Task("merge", table, number))
            with contextlib.suppress(NotFoundError):
                members += merged.decode(store.read(key), key).members
        return members

    return mock.patch.object(gathering, "table_members", table_members)


@sabotage("a missing input is fewer rows", known=3)
def missing_is_fewer() -> Any:
    def step_ready(step: Any, shape: Any, facts: Any) -> bool:
        return all(facts.end(table) is not None for table in step.tables)

    def table_members(store: Any, found: JobRun, table: str) -> list[merged.MergedMember]:
        members: list[merged.MergedMember] = []
        end = StoreFacts(store, found.keys).ending(table)
        for group in range(found.shape.group_count(end.batches if end else 0)):
            key = found.keys.output(Task("merge", table, group))
            with contextlib.suppress(NotFoundError):
                members += merged.decode(store.read(key), key).members
        return members

    return _both(
        mock.patch("caudal.jobs.reconcile.step_ready", step_ready),
        mock.patch.object(gathering, "table_members", table_members),
    )


@sabotage("the client's expiry asks for an end only", known=7)
def expiry_by_end_only() -> Any:
    def awaits(shape: Any, facts: StoreFacts) -> bool:
        return any(facts.end(table) is None for table in shape.tables)

    return mock.patch.object(reconciler, "awaits_client", awaits)


@sabotage("a table's last group is not looked at when its end arrives", PLAIN, known=3)
def no_follow_up_at_end() -> Any:
    return calmly(mock.patch.object(service, "after_end", _no_tasks))


@sabotage("a batch is confirmed to the client before it is published", PLAIN, known=28)
def confirm_before_publish() -> Any:
    publish = service.JobService._publish

    def lazily(self: Any, found: JobRun, tasks: Sequence[Task]) -> None:
        with contextlib.suppress(BrokerError):
            publish(self, found, list(tasks))

    return calmly(mock.patch.object(service.JobService, "_publish", lazily))


@sabotage("a machine that cannot run a task now fails the job", known=2)
def passing_is_blamed() -> Any:
    return mock.patch.object(execute, "DETERMINISTIC", (*execute.DETERMINISTIC, NotNowError))


@sabotage("a condemned task is handed back for ever", known=9)
def never_condemned() -> Any:
    blamed = tuple(one for one in execute.DETERMINISTIC if one is not CondemnedError)
    return mock.patch.multiple(
        execute, DETERMINISTIC=blamed, PASSING=(*execute.PASSING, CondemnedError)
    )


@sabotage("a client takes results before its own ends were confirmed", ("other", "short"), known=97)
def results_of_others() -> Any:
    def there(self: Any, status: Any) -> list[str]:
        return [name for name in status.results if name not in self.results]

    return mock.patch.object(upload.Upload, "_there", there)


@sabotage("a job that is done is believed to be of the same data", ("other", "short"), known=5)
def end_of_done_not_compared() -> Any:
    return mock.patch.object(service, "check_same_end", _nothing)


@sabotage("another owner is served", ("stranger",), known=2)
def owner_not_checked() -> Any:
    return mock.patch.object(service.JobService, "_check_owner", _nothing)


@sabotage("a task goes on although its job has ended", ("cancel",), known=168)
def unwanted_goes_on() -> Any:
    asked = beat.TaskBeat.__call__

    def ask(self: TaskBeat) -> bool:
        return asked(self) or self.stopping is beat.Stopping.UNWANTED

    @contextlib.contextmanager
    def patched() -> Iterator[None]:
        """What such a task adds is seen only until the janitor's look of every hour."""
        unseen = mock.patch("tests.simulation.world.World.look_for_unmarked")
        with mock.patch.object(beat.TaskBeat, "__call__", ask), unseen:
            yield

    return patched()


@sabotage("a task that makes way is published for nobody", PLAIN, known=1)
def way_without_return() -> Any:
    def carry(held: HeldDelivery, report: TaskReport) -> None:
        quiet = replace(held.ports, broker=_Deaf(held.ports.broker))
        if not report.delivery.message.slow:
            held = HeldDelivery(quiet, held.delivery, held.waiting)
        carried(held, report)

    carried = execute._carry
    return calmly(_both(mock.patch.object(execute, "_carry", carry), every_task_makes_way()))


def every_task_makes_way() -> Any:
    """Every task gives up its worker once: rare otherwise, as two owners must meet a slow task."""

    def makes_way(self: beat.TaskBeat, passed: float) -> bool:
        return self.message.slow == 0

    return mock.patch.object(beat.TaskBeat, "_makes_way", makes_way)


@sabotage("an error that nobody foresaw is handed back for ever", known=5)
def unforeseen_for_ever() -> Any:
    return mock.patch.object(execute, "is_suspect", return_value=False)


@sabotage("whatever a message names is taken for a task of its job", known=10)
def stray_is_believed() -> Any:
    return mock.patch.object(execute, "belongs", return_value=True)


@sabotage("one query's failure fails the job", PLAIN, known=2)
def failure_is_everybodys() -> Any:
    return mock.patch.object(execute, "failed_output", return_value=None)


@sabotage("a batch over which a scan failed is left out", PLAIN, known=5)
def failed_is_fewer() -> Any:
    def table_members(store: Any, found: JobRun, table: str) -> list[merged.MergedMember]:
        return [one for one in members(store, found, table) if not one.index.failed]

    members = gathering.table_members
    return mock.patch.object(gathering, "table_members", table_members)


class _Deaf:
    """A broker that drops what goes to the slow lane."""

    def __init__(self, broker: Any) -> None:
        self._broker = broker

    def publish(self, messages: Sequence[Message]) -> None:
        if kept := [one for one in messages if not one.slow]:
            self._broker.publish(kept)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)


def calmly(broken: Any) -> Any:
    """Without a reconciler and without lost messages: what is published must be enough."""
    return _both(broken, without_reconciler(), _nothing_lost())


@contextlib.contextmanager
def _nothing_lost() -> Iterator[None]:
    def arrive(self: SimulatedBroker, message: Message) -> None:
        self.put(message, 0)

    with (
        mock.patch.object(SimulatedBroker, "_arrive", arrive),
        mock.patch.object(SimulatedBroker, "wipe", _nothing),
    ):
        yield


@contextlib.contextmanager
def _both(*managers: Any) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for one in managers:
            stack.enter_context(one)
        yield


def _nothing(*_: Any) -> None:
    """Instead of something."""


def _no_names(*_: Any) -> Iterator[str]:
    return iter(())


def _no_tasks(*_: Any) -> list[Task]:
    return []
