"""Logs one line and updates the metrics for each task, from the loop's events (jobs/events.py)."""

import logging
import time
from typing import Any

from caudal.broker.port import Delivery
from caudal.formats.keys import Message
from caudal.jobs.events import TaskEnd, TaskEvents, TaskReport
from caudal.process.logs import fields
from caudal.worker.figures import WorkerMetrics

_log = logging.getLogger(__name__)
_LEVELS = {TaskEnd.FAILED: logging.WARNING, TaskEnd.HANDED_BACK: logging.WARNING}


def names_of(message: Message) -> dict[str, Any]:
    """Return a task in the words of the glossary."""
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


def told_task(message: Message) -> str:
    """Return a task in a few words, without its job.

    >>> told_task(Message("j", "r", Task("map", "reviews", 12)))
    'map reviews 12'
    """
    task = message.task
    return f"{task.kind} {task.name}" + ("" if task.kind == "finish" else f" {task.number}")


class TaskLog:
    """The log and metrics of one worker's tasks, one task at a time."""

    def __init__(self, figures: WorkerMetrics, facts: TaskEvents) -> None:
        self._figures = figures
        self._facts = facts
        self._began = 0.0

    def began(self, delivery: Delivery) -> None:
        """See TaskEvents."""
        self._began = time.monotonic()
        self._figures.held.set(1)
        self._figures.doing = told_task(delivery.message)
        self._facts.began(delivery)

    def ended(self, report: TaskReport) -> None:
        """See TaskEvents."""
        message, seconds = report.delivery.message, time.monotonic() - self._began
        kind, figures = message.task.kind, self._figures
        figures.held.set(0)
        figures.doing = ""
        if report.needs_other:
            figures.left, figures.left_at = report.reason or "", time.monotonic()
        self._facts.ended(report)
        figures.done += 1
        figures.tasks.labels(kind, report.end).inc()
        figures.seconds.labels(kind).observe(seconds)
        figures.bytes_in.labels(kind).inc(report.bytes_in)
        figures.bytes_out.labels(kind).inc(report.bytes_out)
        about = fields(
            **names_of(message),
            seconds=round(seconds, 3),
            deliveries=report.delivery.count,
            bytes_in=report.bytes_in,
            bytes_out=report.bytes_out,
            reason=report.reason,
        )
        _log.log(_LEVELS.get(report.end, logging.INFO), f"task {report.end}", extra=about)
