"""What is logged and counted of a task; and how errors that nobody foresaw end."""

import itertools
import logging
from pathlib import Path
from typing import Any

import pytest

from caudal.broker import MemoryBroker
from caudal.errors import QueryError
from caudal.formats.keys import Message, Task
from caudal.jobs.events import NoTaskEvents, TaskEnd, TaskReport
from caudal.process.logs import STABLE
from caudal.process.signals import Stop
from caudal.store.memory import MemoryStore
from caudal.worker.figures import WorkerMetrics
from caudal.worker.process import Worker
from caudal.worker.settings import WorkerSettings
from caudal.worker.task_log import TaskLog, names_of

MESSAGE = Message("j", "r", Task("map", "reviews", 7))


class Scene:
    """A task log that is told of one delivery."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO")
        self.caplog = caplog
        self.figures = WorkerMetrics()
        self.task_log = TaskLog(self.figures, NoTaskEvents())
        broker = MemoryBroker()
        broker.publish([MESSAGE])
        delivery = broker.consume().take()
        assert delivery
        self.report = TaskReport(delivery)
        self.task_log.began(delivery)

    def said(self) -> dict[str, Any]:
        self.task_log.ended(self.report)
        (record,) = self.caplog.records
        told: dict[str, Any] = getattr(record, "caudal_fields", {})
        return {"event": record.getMessage(), "level": record.levelno, **told}

    def figure(self, name: str, **labels: str) -> float | None:
        return self.figures.registry.get_sample_value(name, labels)


@pytest.fixture
def scene(caplog: pytest.LogCaptureFixture) -> Scene:
    return Scene(caplog)


def test_a_task_that_is_done(scene: Scene) -> None:
    assert scene.figure("caudal_worker_held") == 1
    scene.report.end, scene.report.bytes_in, scene.report.bytes_out = TaskEnd.DONE, 5, 8
    said = scene.said()
    assert said.pop("seconds") >= 0
    assert said == {
        "event": "task done", "level": logging.INFO, "job": "j", "run": "r", "task": "map",
        "table": "reviews", "batch": 7, "deliveries": 1, "bytes_in": 5, "bytes_out": 8,
    }  # fmt: skip
    assert scene.figure("caudal_worker_tasks_total", kind="map", ending="done") == 1
    assert scene.figure("caudal_worker_bytes_in_total", kind="map") == 5
    assert scene.figure("caudal_worker_held") == 0
    assert scene.figures.done == 1


@pytest.mark.parametrize("end", [TaskEnd.FAILED, TaskEnd.HANDED_BACK])
def test_an_end_with_a_reason_is_a_warning_of_one_line(scene: Scene, end: TaskEnd) -> None:
    scene.report.note(end, QueryError("no such\nthing"))
    said = scene.said()
    assert (said["event"], said["reason"]) == (f"task {end}", "no such thing")
    assert said["level"] == logging.WARNING


@pytest.mark.parametrize("end", [TaskEnd.ADOPTED, TaskEnd.SKIPPED])
def test_an_end_without_a_reason_is_no_warning(scene: Scene, end: TaskEnd) -> None:
    scene.report.end = end
    said = scene.said()
    assert (said["event"], said["level"]) == (f"task {end}", logging.INFO)
    assert "reason" not in said


def test_the_words_of_the_glossary() -> None:
    def said(kind: Any, name: str, number: int) -> dict[str, Any]:
        found = names_of(Message("j", "r", Task(kind, name, number)))
        return {key: found[key] for key in found if key not in ("job", "run", "task")}

    assert set(names_of(MESSAGE)) <= set(STABLE)
    assert said("merge", "reviews", 2) == {"table": "reviews", "group": 2}
    assert said("fold", "f1", 3) == {"fold": "f1", "partition": 3}
    assert said("finish", "q1", 0) == {"query": "q1"}


class StrangeStore(MemoryStore):
    """Breaks in a way that nobody foresaw, as often as it is told to."""

    def __init__(self, stop: Stop) -> None:
        super().__init__()
        self.stop = stop
        self.turns = itertools.count()

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        if key != "jobs/j/job.json":
            return super().read(key, offset, length)
        if next(self.turns) == 0:
            raise ZeroDivisionError
        self.stop.request("seen twice")
        return super().read(key, offset, length)


def test_an_error_that_nobody_foresaw_does_not_end_the_worker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    stop, broker = Stop(), MemoryBroker()
    store = StrangeStore(stop)
    broker.publish([MESSAGE])
    Worker(WorkerSettings("w"), lambda: store, broker, tmp_path, WorkerMetrics(), stop).run()
    events = [record.getMessage() for record in caplog.records if "caudal" in record.name]
    assert events == [
        "ready",
        "task handed back",
        "unexpected error: please report it",
        "task skipped",
        "stopped",
    ]
