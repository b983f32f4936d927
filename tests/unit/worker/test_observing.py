"""What the witness makes of a task, told by log and figures; and how strange errors end."""

import itertools
import logging
from pathlib import Path
from typing import Any

import pytest

from caudal.broker import MemoryBroker
from caudal.errors import AlreadyExistsError, NotFoundError, QueryError, StoreError
from caudal.formats.keys import Keys, Message, Task
from caudal.process.logs import STABLE
from caudal.process.signals import Stop
from caudal.store.memory import MemoryStore
from caudal.worker.figures import WorkerMetrics
from caudal.worker.process import Worker
from caudal.worker.settings import WorkerSettings
from caudal.worker.task_log import LoggedConsumer, LoggedStore, TaskLog, names_of

MESSAGE = Message("j", "r", Task("map", "reviews", 7))
KEYS = Keys("j", "r")
OUTPUT = KEYS.output(MESSAGE.task)


class Scene:
    """A witness with a store and a consumer that holds one task."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO")
        self.caplog = caplog
        self.figures = WorkerMetrics()
        self.task_log = TaskLog(self.figures)
        broker = MemoryBroker()
        broker.publish([MESSAGE])
        self.store = LoggedStore(MemoryStore(), self.task_log)
        self.consumer = LoggedConsumer(broker.consume(), self.task_log)
        delivery = self.consumer.take()
        assert delivery
        self.delivery = delivery

    def said(self) -> dict[str, Any]:
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
    scene.store.create(KEYS.batch("reviews", 7), b"12345")
    scene.store.read(KEYS.batch("reviews", 7))
    scene.store.create(OUTPUT, b"123")
    scene.consumer.acknowledge(scene.delivery)
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


def test_a_race_that_another_won(scene: Scene) -> None:
    scene.store.create(OUTPUT, b"theirs")
    with pytest.raises(AlreadyExistsError):
        scene.store.create(OUTPUT, b"mine")
    scene.consumer.acknowledge(scene.delivery)
    assert scene.said()["event"] == "task adopted"


def test_a_task_that_nobody_wants_any_more(scene: Scene) -> None:
    with pytest.raises(NotFoundError):
        scene.store.read("jobs/j/job.json")
    scene.consumer.acknowledge(scene.delivery)
    assert scene.said()["event"] == "task skipped"
    assert "reason" not in scene.said()


def test_a_task_that_fails_its_job(scene: Scene) -> None:
    scene.task_log.failed(QueryError("no such\nthing"))
    scene.store.create(KEYS.outcome, b"failed")
    scene.consumer.acknowledge(scene.delivery)
    said = scene.said()
    assert (said["event"], said["reason"]) == ("task failed", "no such thing")
    assert said["level"] == logging.WARNING


def test_a_task_that_is_handed_back(scene: Scene) -> None:
    with pytest.raises(NotFoundError):
        scene.store.read(KEYS.batch("reviews", 7))
    scene.consumer.hand_back(scene.delivery)
    said = scene.said()
    assert said["event"] == "task handed back"
    assert KEYS.batch("reviews", 7) in said["reason"]


def test_objects_of_jobs_never_change(scene: Scene) -> None:
    change = scene.store.replace
    with pytest.raises(StoreError, match="never change"):
        change("k", b"other")


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
        "an error that nobody foresaw: please report it",
        "task handed back",
        "task skipped",
        "stopped",
    ]
