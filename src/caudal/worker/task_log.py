"""Watching the loop without touching it: its store and consumer, with a witness beside them.

What the loop does with a task shows in what it asks of them: objects read and created, a message
acknowledged or handed back. The witness puts that together into one line of the log per task, and
into figures. It belongs to one thread: what others ask of the store meanwhile is not the task's.
"""

import logging
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from caudal.broker.port import Consumer, Delivery
from caudal.errors import AlreadyExistsError, CaudalError, StoreError
from caudal.formats.job import Job, Request
from caudal.formats.keys import Keys, Message, Task
from caudal.jobs.interfaces import Compute, Inputs, MayGoOn, Planned, go_on
from caudal.process.logs import fields
from caudal.store.port import PAGE, Page, Store
from caudal.worker.figures import WorkerMetrics

_log = logging.getLogger(__name__)


def names_of(message: Message) -> dict[str, Any]:
    """A task in the words of the glossary."""
    task = message.task
    found: dict[str, Any] = {"job": message.job, "run": message.run, "task": task.kind}
    match task.kind:
        case "map":
            found |= {"table": task.name, "batch": task.number}
        case "merge":
            found |= {"table": task.name, "group": task.number}
        case "fold":
            found |= {"fold": task.name, "partition": task.number}
        case "finish":
            found |= {"query": task.name}
    return found


@dataclass
class _TaskFacts:
    """What was seen since a task was taken."""

    delivery: Delivery
    began: float = field(default_factory=time.monotonic)
    bytes_in: int = 0
    bytes_out: int = 0
    made: str | None = None  # its own output: created, or adopted because another was first
    ended_job: bool = False
    error: str | None = None

    def __post_init__(self) -> None:
        message = self.delivery.message
        keys = Keys(message.job, message.run, message.group)
        self.output, self.outcome = keys.output(message.task), keys.outcome


class TaskLog:
    """Sees one task at a time."""

    def __init__(self, figures: WorkerMetrics) -> None:
        self._figures = figures
        self._seen: _TaskFacts | None = None
        self._thread = 0

    def _mine(self) -> _TaskFacts | None:
        return self._seen if threading.get_ident() == self._thread else None

    def taken(self, delivery: Delivery) -> None:
        self._thread = threading.get_ident()
        self._seen = _TaskFacts(delivery)
        self._figures.held.set(1)

    def read(self, data: bytes) -> None:
        if (seen := self._mine()) is not None:
            seen.bytes_in += len(data)

    def created(self, key: str, size: int, made: str = "done") -> None:
        if (seen := self._mine()) is None:
            return
        seen.bytes_out += size
        if key == seen.output:
            seen.made = made
        elif key == seen.outcome:
            seen.ended_job = True

    def failed(self, error: Exception) -> None:
        if (seen := self._mine()) is not None:
            seen.error = " ".join(str(error).split()) or type(error).__name__

    def acknowledged(self) -> None:
        if self._seen is not None and self._seen.ended_job and self._seen.made is None:
            self._end("failed", logging.WARNING, self._seen.error)  # and its job with it
        elif self._seen is not None:
            self._end(self._seen.made or "skipped", logging.INFO)

    def handed_back(self) -> None:
        if self._seen is not None:
            self._end("handed back", logging.WARNING, self._seen.error)

    def _end(self, ending: str, level: int, reason: str | None = None) -> None:
        seen, self._seen = self._seen, None
        if seen is None:
            return
        kind, seconds = seen.delivery.message.task.kind, time.monotonic() - seen.began
        figures = self._figures
        figures.held.set(0)
        figures.done += 1
        figures.tasks.labels(kind, ending).inc()
        figures.seconds.labels(kind).observe(seconds)
        figures.bytes_in.labels(kind).inc(seen.bytes_in)
        figures.bytes_out.labels(kind).inc(seen.bytes_out)
        about = fields(
            **names_of(seen.delivery.message),
            seconds=round(seconds, 3),
            deliveries=seen.delivery.count,
            bytes_in=seen.bytes_in,
            bytes_out=seen.bytes_out,
            reason=reason,
        )
        _log.log(level, f"task {ending}", extra=about)


@dataclass(frozen=True)
class LoggedConsumer:
    """A consumer as the loop sees it."""

    consumer: Consumer
    task_log: TaskLog

    def take(self) -> Delivery | None:
        delivery = self.consumer.take()
        if delivery is not None:
            self.task_log.taken(delivery)
        return delivery

    def acknowledge(self, delivery: Delivery) -> None:
        self.consumer.acknowledge(delivery)
        self.task_log.acknowledged()

    def hand_back(self, delivery: Delivery) -> None:
        self.consumer.hand_back(delivery)
        self.task_log.handed_back()

    def close(self) -> None:
        self.consumer.close()


@dataclass(frozen=True)
class LoggedCompute:
    """The engine as the loop sees it."""

    compute: Compute
    task_log: TaskLog

    def plan(self, request: Request, moment: float) -> Planned:
        return self.compute.plan(request, moment)

    def run(
        self, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn = go_on
    ) -> bytes:
        try:
            return self.compute.run(job, task, inputs, deliveries, beat)
        except (CaudalError, OSError) as error:
            self.task_log.failed(error)
            raise


@dataclass(frozen=True)
class LoggedStore(Store):
    """A store as the loop sees it."""

    store: Store
    task_log: TaskLog

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        size = len(data) if isinstance(data, bytes) else data.stat().st_size
        try:
            self.store.create(key, data, lasting=lasting)
        except AlreadyExistsError:
            self.task_log.created(key, 0, "adopted")
            raise
        except StoreError as error:
            self.task_log.failed(error)
            raise
        self.task_log.created(key, size)

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        try:
            data = self.store.read(key, offset, length)
        except StoreError as error:
            self.task_log.failed(error)
            raise
        self.task_log.read(data)
        return data

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        try:
            return self.store.list(prefix, recursive=recursive, after=after, limit=limit)
        except StoreError as error:
            self.task_log.failed(error)
            raise

    def delete(self, key: str, *, lasting: bool = True) -> None:
        self.store.delete(key, lasting=lasting)

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        raise StoreError(f"{key}: objects of jobs never change")
