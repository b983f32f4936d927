"""A job that needs another version waits for such a process, and nothing fails."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import msgspec
import pytest
from tests.harness.gateway_place import Place, create, send

from caudal.broker.port import Delivery
from caudal.formats import job as job_format
from caudal.formats.keys import job_key
from caudal.jobs import execute, objects
from caudal.jobs.events import TaskEnd, TaskReport
from caudal.jobs.execute import TurnResult
from caudal.jobs.ports import Ports
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.runs import JobRuns
from caudal.worker.figures import WorkerMetrics
from caudal.worker.task_log import TaskLog


class Seen:
    """What a worker's loop reported."""

    def __init__(self) -> None:
        self.reports: list[TaskReport] = []

    def began(self, delivery: Delivery) -> None: ...

    def ended(self, report: TaskReport) -> None:
        self.reports.append(report)


@pytest.fixture
def place() -> Iterator[Place]:
    with Place() as made:
        create(made.client())
        send(made.client(), "people")
        send(made.client(), "visits")
        yield made


def plan_with(place: Place, more: Mapping[str, str]) -> None:
    """Change the versions that the job was planned with."""
    job = objects.job_of(objects.job_bytes(place.store, "j"), "j")
    place.store.delete(job_key("j"))
    changed = msgspec.structs.replace(job, versions={**job.versions, **more})
    place.store.create(job_key("j"), job_format.encode(changed))


def worker(place: Place, seen: Seen, level: int = 1) -> Ports:
    return replace(place.ports, job_runs=JobRuns(place.store, level), events=seen)


def turns(place: Place, ports: Ports, count: int) -> set[TurnResult]:
    return {execute.take_turn(ports, place.consumer) for _ in range(count)}


def test_a_plan_of_a_higher_level_waits_for_a_newer_worker(place: Place) -> None:
    plan_with(place, {"plan": "2"})
    waiting, old = sum(place.broker.depths().values()), Seen()
    assert turns(place, worker(place, old), 40) == {TurnResult.HANDED_BACK}
    assert sum(place.broker.depths().values()) == waiting
    assert {(one.end, one.needs_other, one.delivery.count) for one in old.reports} == {
        (TaskEnd.HANDED_BACK, True, 1)
    }
    assert "plan of level 2" in str(old.reports[0].reason)
    new = Seen()
    while execute.take_turn(worker(place, new, 2), place.consumer) is not TurnResult.IDLE:
        pass
    assert {one.delivery.count for one in new.reports} == {1}
    results = [one.key for one in place.store.list("jobs/j/run0/results/").entries]
    assert {key.rpartition("/")[2] for key in results} >= {"adults", "places"}


@pytest.mark.parametrize("name", ["rows", "hash", "mapped"])
def test_tasks_of_one_job_are_computed_by_one_version(place: Place, name: str) -> None:
    plan_with(place, {name: "another"})
    seen = Seen()
    assert turns(place, worker(place, seen), 20) == {TurnResult.HANDED_BACK}
    assert f"planned with {name} another" in str(seen.reports[0].reason)
    assert place.client().get("/jobs/j").json()["outcome"] is None


def test_other_differences_do_not_matter(place: Place) -> None:
    plan_with(place, {"kernels": "another", "duckdb": "2.0.1", "caudal": "9"})
    place.work()
    assert place.client().get("/jobs/j").json()["outcome"]["state"] == "done"


def test_an_older_gateway_leaves_the_job_to_others(place: Place) -> None:
    plan_with(place, {"plan": "2"})
    answer = place.client().get("/jobs/j")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    waiting = sum(place.broker.depths().values())
    for _ in range(3):
        Reconciler(place.ports).round()
    assert sum(place.broker.depths().values()) == waiting
    assert [one["id"] for one in place.client().get("/jobs").json()["jobs"]] == ["j"]


def test_a_worker_says_what_it_left(place: Place) -> None:
    plan_with(place, {"plan": "2"})
    figures = WorkerMetrics()
    turns(place, worker(place, TaskLog(figures, Seen())), 1)  # type: ignore[arg-type]
    assert "job j has a plan of level 2, this process reads level 1" in figures.left
