"""Small jobs go on in the worker that has their data (jobs/taken_along.py)."""

from dataclasses import replace

import pytest
from tests.unit.tasks.test_end_to_end import BOOKS, CASES, Place, order_of, sent

from caudal.broker.port import BrokerError, Delivery
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.job import Options
from caudal.formats.outcomes import End, digest_of_digests
from caudal.jobs import execute
from caudal.jobs.events import NoTaskEvents, TaskEnd, TaskReport
from caudal.jobs.ports import Bounds
from caudal.store import MemoryStore

_BYTES = 1 << 20
_WHOLE = Options(partitions=2, group=4)


class Told:
    """Keeps every event, and lets time pass at each."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.ended_tasks: list[tuple[str, str, int]] = []
        self.place: Place | None = None
        self._seconds = seconds

    def began(self, delivery: Delivery) -> None:
        assert self.place is not None
        self.place.ports.clock.sleep(self._seconds)

    def ended(self, report: TaskReport) -> None:
        task = report.delivery.message.task
        assert report.end is TaskEnd.DONE
        self.ended_tasks.append((task.kind, task.name, report.delivery.count))


class Dying(MemoryStore):
    """The process dies when it has created an object whose key holds this."""

    deadly = "nothing"

    def create(self, key: str, data: object, *, lasting: bool = True) -> None:
        super().create(key, data, lasting=lasting)  # type: ignore[arg-type]
        if self.deadly in key:
            raise SystemExit(key)


def begun(bounds: Bounds, told: Told | None = None, store: MemoryStore | None = None) -> Place:
    """A job over books with one batch in each table. The ends are known before the batches."""
    place = Place(store or MemoryStore())
    place.ports = replace(place.ports, bounds=bounds)
    if told is not None:
        told.place = place
        place.ports = replace(place.ports, events=told)
    order = order_of(BOOKS, CASES[0], _WHOLE)
    place.gateway.create("j", "me", order.request)
    for table, batches in sent(order).items():
        found = [batch_format.describe(frame.of_bytes(one), table) for one in batches]
        digest = digest_of_digests(one.digest for one in found)
        place.gateway.put_end(
            "j", "me", table, End(len(found), sum(b.bytes for b in found), digest)
        )
        for one in batches:
            place.gateway.put_batch("j", "me", one)
    return place


def deliveries(place: Place) -> int:
    """Work until nothing waits; return the number of deliveries."""
    count = 0
    while (delivery := place.consumer.take()) is not None:
        execute.execute_task(place.ports, place.consumer, delivery)
        count += 1
    return count


def state(place: Place) -> str:
    outcome = place.gateway.status("j", "me").outcome
    return outcome.state if outcome else "running"


def test_a_small_job_needs_a_message_for_each_batch_only() -> None:
    told = Told()
    place = begun(Bounds(along_bytes=_BYTES), told)
    assert deliveries(place) == 2
    assert state(place) == "done"
    kinds = {kind for kind, _, _ in told.ended_tasks}
    assert kinds == {"map", "merge", "fold", "finish"}  # each is told as a task of its own


@pytest.mark.parametrize("most", [0, 100])
def test_tasks_of_a_job_with_more_data_are_published(most: int) -> None:
    told = Told()
    place = begun(Bounds(along_bytes=most), told)
    assert deliveries(place) == len(told.ended_tasks) > 2
    assert state(place) == "done"


def test_what_waits_is_published_when_the_time_is_over() -> None:
    told = Told(seconds=1.0)
    place = begun(Bounds(along_bytes=_BYTES, along_seconds=2.5), told)
    assert 2 < deliveries(place) < len(told.ended_tasks)
    assert state(place) == "done"


def test_a_broker_that_fails_then_gets_the_delivery_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its worker would hold it for ever, and nobody would go on."""
    place = begun(Bounds(along_bytes=_BYTES, along_seconds=2.5), Told(seconds=1.0))
    with monkeypatch.context() as failing:
        failing.setattr(place.broker, "publish", _fail)
        delivery = place.consumer.take()
        assert delivery is not None
        ending = execute.execute_task(place.ports, place.consumer, delivery)
        assert ending is execute.TurnResult.HANDED_BACK
    place.ports = replace(place.ports, events=NoTaskEvents())
    deliveries(place)
    assert state(place) == "done"


def _fail(messages: object) -> None:
    raise BrokerError("away")


@pytest.mark.parametrize("deadly", ["/mapped/", "/merged/", "/folds/", "/results/"])
@pytest.mark.parametrize("most", [_BYTES, 0], ids=["taken along again", "published"])
def test_what_a_dead_worker_left_is_delivered_again(deadly: str, most: int) -> None:
    """Its successor goes on from whatever output was the last, without a reconciler: also one that
    would not have taken the tasks along by itself."""
    store = Dying()
    place = begun(Bounds(along_bytes=_BYTES), store=store)
    store.deadly = deadly
    with pytest.raises(SystemExit, match=deadly):
        deliveries(place)
    store.deadly = "nothing"
    place.consumer.close()
    place.consumer = place.broker.consume()
    place.ports = replace(place.ports, bounds=Bounds(along_bytes=most))
    deliveries(place)
    assert state(place) == "done"
