"""What a worker's loop says about each task: one report per delivery, told after its answer."""

from dataclasses import replace

import pytest
from tests.unit.tasks.test_end_to_end import BOOKS, CASES, SMALL, Place, order_of, sent

from caudal.broker.port import Delivery
from caudal.errors import AlreadyExistsError, StoreError
from caudal.formats.keys import Message, Task
from caudal.jobs import execute
from caudal.jobs.events import TaskEnd, TaskReport
from caudal.store.memory import MemoryStore


class Told:
    """Keeps every event."""

    def __init__(self) -> None:
        self.began_with: list[Delivery] = []
        self.reports: list[TaskReport] = []

    def began(self, delivery: Delivery) -> None:
        self.began_with.append(delivery)

    def ended(self, report: TaskReport) -> None:
        self.reports.append(report)

    @property
    def ends(self) -> list[TaskEnd]:
        return [report.end for report in self.reports]


@pytest.fixture
def told() -> Told:
    return Told()


class Moody(MemoryStore):
    """Fails to create outputs of maps in the way that it is told to."""

    error: StoreError | None = None

    def create(self, key: str, data: object, *, lasting: bool = True) -> None:
        if self.error is not None and "/mapped/" in key:
            raise self.error
        super().create(key, data, lasting=lasting)  # type: ignore[arg-type]


def with_one_batch(told: Told) -> tuple[Place, Moody]:
    store = Moody()
    place = Place(store)
    place.ports = replace(place.ports, events=told)
    order = order_of(BOOKS, CASES[0], SMALL)
    place.gateway.create("j", "me", order.request)
    place.gateway.put_batch("j", "me", sent(order)["books"][0])
    return place, store


def test_a_task_that_is_done_tells_its_bytes(told: Told) -> None:
    place, _ = with_one_batch(told)
    assert execute.take_turn(place.ports, place.consumer) is execute.TurnResult.ACKNOWLEDGED
    (report,) = told.reports
    assert report.end is TaskEnd.DONE
    assert report.bytes_in > 0
    assert report.bytes_out > 0
    assert told.began_with == [report.delivery]


def test_a_race_that_another_worker_won_is_adopted(told: Told) -> None:
    place, store = with_one_batch(told)
    store.error = AlreadyExistsError("taken")
    execute.take_turn(place.ports, place.consumer)
    assert told.ends == [TaskEnd.ADOPTED]


def test_a_store_that_fails_hands_the_task_back_with_the_reason(told: Told) -> None:
    place, store = with_one_batch(told)
    store.error = StoreError("the disk\nis gone")
    execute.take_turn(place.ports, place.consumer)
    (report,) = told.reports
    assert (report.end, report.reason) == (TaskEnd.HANDED_BACK, "the disk is gone")


def test_a_task_of_no_job_is_skipped(told: Told) -> None:
    place, _ = with_one_batch(told)
    place.gateway.cancel("j", "me")
    place.broker.publish([Message("nobody", "r", Task("map", "books", 0))])
    place.work()
    assert set(told.ends) == {TaskEnd.SKIPPED}
    assert len(told.ends) == 2


def test_a_task_that_fails_its_job_tells_why(told: Told) -> None:
    place, _ = with_one_batch(told)
    key = next(one for one in place.stored() if "/batches/" in one)
    place.store.delete(key)
    place.store.create(key, b"nonsense")
    place.work()
    assert told.ends[-1] is TaskEnd.FAILED
    assert set(told.ends[:-1]) == {TaskEnd.HANDED_BACK}
    assert told.reports[-1].reason
    assert place.gateway.status("j", "me").outcome
