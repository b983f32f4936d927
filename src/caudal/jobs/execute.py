"""The worker's loop, the same for every task. `execute_task` is the whole path of a task."""

import contextlib
import logging
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from caudal.broker.port import BrokerError, Consumer, Delivery
from caudal.errors import (
    AlreadyExistsError,
    ApplicationError,
    DataError,
    FormatError,
    MissingPackageError,
    NotFoundError,
    OtherVersionError,
    QueryError,
    StoreError,
    UsageError,
)
from caudal.formats.keys import MOST_SLOW, Task
from caudal.formats.loads import LOAD
from caudal.formats.output_sizes import stage_sizes
from caudal.jobs import objects
from caudal.jobs.beat import Stopping, TaskBeat
from caudal.jobs.events import TaskEnd, TaskReport
from caudal.jobs.failed_queries import end_done, failed_output
from caudal.jobs.inputs import WrongEndError, gather, merge_group, size_of
from caudal.jobs.interfaces import CondemnedError, NotNowError, StoppedError, is_suspect
from caudal.jobs.levels import require_fit
from caudal.jobs.loads import commit_load, store_batch
from caudal.jobs.ports import Ports
from caudal.jobs.readiness import all_finished, belongs, follow_up
from caudal.jobs.runs import JobRun, end_run
from caudal.jobs.shared_maps import facts_of, is_made, is_shared, output_key
from caudal.jobs.taken_along import HeldDelivery
from caudal.jobs.upkeep import do_upkeep
from caudal.process.logs import fields

_log = logging.getLogger(__name__)

# Errors that the same task meets on every machine and every time. They fail the task's queries if
# those caused them (failed_queries.py), otherwise the job.
DETERMINISTIC = (
    *(QueryError, ApplicationError, DataError, FormatError, WrongEndError),
    CondemnedError,
)
# Errors of this machine or this moment: a missing model or package, a disk that fails.
# FormatError is raised before the task is looked at: job.json is damaged, or of a newer format.
# NotNowError is raised later: whether a suspect task is harmful could not be determined.
PASSING = (
    *(StoreError, BrokerError, FormatError, UsageError, MissingPackageError, OSError),
    NotNowError,
)


_MOST_REASON = 500  # characters


class TurnResult(Enum):
    """The result of one turn of the loop."""

    IDLE = "nothing to take"
    ACKNOWLEDGED = "done, or no longer wanted"
    HANDED_BACK = "could not be done now"


class Made(Enum):
    """The origin of a task's output."""

    HERE = "by this worker, now"
    BY_ANOTHER = "it was there, or another was quicker"
    NEVER = "the task must fail wherever it runs"


def execute_task(ports: Ports, consumer: Consumer, delivery: Delivery) -> TurnResult:
    """Execute the five steps of one task, in exactly this order.

    1. If job.json does not name its run, the run has an outcome, or the job has no such task:
       acknowledge and drop the message.
    2. If its output exists, skip to 4.
    3. Compute and create the output. A worker that loses the race uses the winner's output.
    4. Find the tasks that became ready, and publish them with confirms. Exception: this is the
       first delivery of a message, and another worker made the output. Then the other worker does
       step 4, or its own message is delivered again. Without the exception, each duplicate of a
       message would duplicate all later tasks, level by level. (Shared outputs: `_must_follow`.)
    5. Acknowledge.

    Step 4 comes after the create, so the worker that finishes last sees that it was the last. It
    comes before the acknowledgement, so a crash at any point leads to a redelivery, which repeats
    steps 2 to 5 without harm.

    A failing store, broker or machine is not the task's fault: the task is handed back. So is a
    task whose input is missing, which then begins again at 1. Both are bounded. If an input stays
    missing, none of our processes published the task: it is dropped. An unexpected error that
    returns with every delivery counts as the task's own. A task that needs a worker of another
    version waits for one (ADR 65).

    Step 4 may take tasks along instead of publishing them. Then their steps 1 to 4 follow, and
    step 5 comes after the last of them (taken_along.py).
    """
    held = HeldDelivery(ports, delivery)
    for one in held.tasks():
        ending = _told(held, consumer, TaskReport(one))
        if ending is not TurnResult.ACKNOWLEDGED:
            return ending
    try:
        held.publish_waiting()
    except BrokerError:
        consumer.hand_back(delivery)
        return TurnResult.HANDED_BACK
    consumer.acknowledge(delivery)
    return TurnResult.ACKNOWLEDGED


def _told(held: HeldDelivery, consumer: Consumer, report: TaskReport) -> TurnResult:
    """Execute one task and tell the listener."""
    held.ports.events.began(report.delivery)
    try:
        return _answer(held, consumer, report)
    except Exception as error:  # the broker got no answer, so it delivers again
        report.note(TaskEnd.HANDED_BACK, error)
        raise
    finally:
        held.ports.events.ended(report)


def _answer(held: HeldDelivery, consumer: Consumer, report: TaskReport) -> TurnResult:
    """Execute steps 1 to 4 of one task. Answer the broker if the delivery ends with it."""
    delivery = report.delivery
    try:
        _carry(held, report)
    except OtherVersionError as error:
        _leave(held, report, error)
        consumer.acknowledge(held.delivery)
        return TurnResult.HANDED_BACK
    except PASSING as error:
        if not (isinstance(error, NotFoundError) and is_suspect(delivery.count)):
            report.note(TaskEnd.HANDED_BACK, error)
            consumer.hand_back(held.delivery)
            return TurnResult.HANDED_BACK
        _log.warning("a task's input stays missing: dropped", extra=_names(delivery, error))
    return TurnResult.ACKNOWLEDGED


def _leave(held: HeldDelivery, report: TaskReport, error: OtherVersionError) -> None:
    """Leave a task to a worker of another version: as a new message, whose deliveries count anew.

    So a task that waits for an upgrade is neither suspected nor given up.
    """
    report.note(TaskEnd.HANDED_BACK, error)
    report.needs_other = True
    held.waiting.append(report.delivery)
    held.publish_waiting()


def _carry(held: HeldDelivery, report: TaskReport) -> None:
    """Execute steps 1 to 4."""
    ports, delivery, message = held.ports, report.delivery, report.delivery.message
    job_run = ports.job_runs.running(message)
    if job_run is None:
        return
    if not belongs(message.task, job_run.shape):
        _log.warning("a message names no task of its job: dropped", extra=_names(delivery))
        return
    beat = TaskBeat(ports, job_run, message)
    try:
        _advance(TaskTurn(held, job_run, report, beat))
    except StoppedError:
        if beat.stopping is Stopping.MAKES_WAY:
            slower = min(message.slow + 1, MOST_SLOW)
            ports.broker.publish([msgspec.structs.replace(message, slow=slower)])
    except PASSING:
        raise
    except Exception as error:
        _log.exception("unexpected error: please report it", extra=_names(delivery))
        if not is_suspect(delivery.count):
            raise NotNowError(f"unexpected error: {error!r}") from error
        reason = f"{message.task.kind} {message.task.name} {message.task.number}: {error!r}"
        report.note(TaskEnd.FAILED, reason)
        end_run(ports.store, ports.clock, job_run.keys, "failed", reason[:_MOST_REASON])
    finally:
        beat.end()


def _names(delivery: Delivery, error: Exception | None = None) -> dict[str, Any]:
    message, reason = delivery.message, str(error) if error else None
    task = message.task
    return fields(job=message.job, task=task.kind, batch=task.number, reason=reason)


@dataclass(frozen=True)
class TaskTurn:
    """One delivery of one task at one worker."""

    held: HeldDelivery
    job_run: JobRun
    report: TaskReport
    beat: TaskBeat

    @property
    def ports(self) -> Ports:
        return self.held.ports

    @property
    def task(self) -> Task:
        return self.report.delivery.message.task

    @property
    def deliveries(self) -> int:
        return self.report.delivery.count

    def fail(self, error: Exception) -> None:
        """Fail the job: this task would fail on every worker."""
        self.report.note(TaskEnd.FAILED, error)
        ports, keys = self.ports, self.job_run.keys
        end_run(ports.store, ports.clock, keys, "failed", str(error))


def _advance(turn: TaskTurn) -> None:
    """Execute steps 2 to 4."""
    present = is_made(turn.ports.store, turn.job_run, turn.task)
    made = Made.BY_ANOTHER if present else _make(turn)
    if made is Made.HERE or (made is Made.BY_ANOTHER and _must_follow(turn)):
        _follow_or_fail(turn)


def _must_follow(turn: TaskTurn) -> bool:
    """Return whether step 4 is this worker's although another one made the output.

    Who made a shared output may have done so for another job.
    """
    if turn.deliveries > 1 or not is_shared(turn.job_run, turn.task):
        return turn.deliveries > 1
    group = turn.task.number // turn.job_run.shape.group
    merge = turn.job_run.keys.output(Task("merge", turn.task.name, group))
    return not objects.exists(turn.ports.store, merge)


def _make(turn: TaskTurn) -> Made:
    """Execute step 3. Return NEVER if the task fails on every worker; the job then has failed.

    If only the task's queries fail, it has an output like any other, which contains the error.

    A damaged input is read again, by this worker or another one, before the job fails: possibly
    only the connection to the store damaged it. It is never deleted and made again, because other
    tasks have read it and objects never change.
    """
    ports, job_run, task, deliveries = turn.ports, turn.job_run, turn.task, turn.deliveries
    versions = ports.compute.versions
    try:
        require_fit(job_run.job.id, job_run.job.versions, versions)
        data = _output(turn)
    except OtherVersionError:
        raise
    except DETERMINISTIC as error:
        if isinstance(error, FormatError) and not is_suspect(deliveries):
            raise
        failed = failed_output(job_run, task, error, deliveries)
        if failed is None:
            turn.fail(error)
            return Made.NEVER
        about = fields(job=job_run.job.id, run=job_run.job.run, task=task.kind, reason=str(error))
        _log.warning("queries failed", extra=about)
        data = failed
    try:
        ports.store.create(output_key(ports.store, job_run, task, data, versions), data)
    except AlreadyExistsError:
        turn.report.end = TaskEnd.ADOPTED
        return Made.BY_ANOTHER
    turn.report.end, turn.report.bytes_out = TaskEnd.DONE, len(data)
    turn.report.stages = stage_sizes(task, data)
    return Made.HERE


def _output(turn: TaskTurn) -> bytes:
    """Return the output of a task; a task of a load also writes to its dataset (loads.py)."""
    ports, job_run, task = turn.ports, turn.job_run, turn.task
    if task.kind == "merge":
        return merge_group(ports.store, job_run, task)
    if task.kind == "finish" and task.name in job_run.shape.commits:
        if task.name == LOAD:
            return commit_load(ports.store, ports.clock, job_run)
        return do_upkeep(ports.store, ports.clock, job_run, turn.beat)
    inputs = gather(ports.store, job_run, task)
    turn.report.bytes_in = sum(map(size_of, inputs.values()))
    data = ports.compute.run(job_run.job, task, inputs, turn.deliveries, turn.beat)
    if task.kind == "map" and job_run.job.load:
        return store_batch(ports.store, job_run, task, data)
    return data


def _follow_or_fail(turn: TaskTurn) -> None:
    """Execute step 4. If a table's end stays damaged, fail the job, as for a damaged input."""
    try:
        follow(turn.held, turn.job_run, turn.task)
    except FormatError as error:
        if not is_suspect(turn.deliveries):
            raise
        turn.fail(error)


def follow(held: HeldDelivery, job_run: JobRun, task: Task) -> None:
    """Execute step 4: publish the tasks that became ready, or take them along; end the job after
    the last finish."""
    ports = held.ports
    facts = facts_of(ports.store, job_run)
    ready = follow_up(task, job_run.shape, facts)
    if ready:
        held.go_on(job_run, ready, facts)
    if task.kind == "finish" and all_finished(job_run.shape, facts):
        end_done(ports.store, ports.clock, job_run)


def take_turn(ports: Ports, consumer: Consumer) -> TurnResult:
    """Take one task, if there is one, and execute it. Pause if none was done."""
    ending = TurnResult.HANDED_BACK
    with contextlib.suppress(BrokerError):  # the broker delivers unanswered messages again
        delivery = consumer.take()
        ending = execute_task(ports, consumer, delivery) if delivery else TurnResult.IDLE
    if ending is not TurnResult.ACKNOWLEDGED:
        idle = ending is TurnResult.IDLE
        ports.clock.sleep(ports.bounds.idle_seconds if idle else ports.bounds.retry_seconds)
    return ending
