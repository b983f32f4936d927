"""A store that is full for a while: who says what, and what it costs."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.one_owner import OneOwner
from tests.unit.tasks.test_end_to_end import BOOKS, CASES, SMALL, Place, order_of, sent

from caudal.errors import StoreFullError
from caudal.formats.job import Options
from caudal.jobs import execute
from caudal.jobs.events import NoTaskEvents
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.upload import Uploader
from caudal.store import MemoryStore
from caudal.worker.figures import WorkerMetrics
from caudal.worker.task_log import TaskLog


class SmallStore(MemoryStore):
    """A store that holds nothing more while it is full."""

    is_full = False

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        if self.is_full:
            raise StoreFullError(f"cannot create {key}: the disk is full")
        super().create(key, data, lasting=lasting)


@pytest.fixture
def store() -> SmallStore:
    return SmallStore()


@pytest.fixture
def place(store: SmallStore) -> Place:
    return Place(store)


def test_a_task_is_handed_back_with_the_reason_and_done_when_there_is_space(
    place: Place, store: SmallStore, caplog: pytest.LogCaptureFixture
) -> None:
    ports = replace(place.ports, events=TaskLog(WorkerMetrics(), NoTaskEvents()))
    order = order_of(BOOKS, CASES[0], SMALL)
    place.gateway.create("j", "me", order.request)
    place.gateway.put_batch("j", "me", sent(order)["books"][0])
    store.is_full = True
    for _ in range(2):
        assert execute.take_turn(ports, place.consumer) is execute.TurnResult.HANDED_BACK
    assert [one.getMessage() for one in caplog.records] == ["task handed back"] * 2
    assert "the disk is full" in str(vars(caplog.records[0]))
    store.is_full = False
    uploader = Uploader(OneOwner(place.gateway), place.clock, look_first=True)
    assert uploader.run(order)[0].state == "done"


def test_a_job_that_waits_for_its_client_expires_if_no_mark_can_be_left_for_long(
    place: Place, store: SmallStore
) -> None:
    """The client is heard all the time. Whoever waits for longer must begin again."""
    order = order_of(BOOKS, CASES[0], Options(silent_seconds=100.0))
    place.gateway.create("j", "me", order.request)
    reconciler = Reconciler(place.ports)
    store.is_full = True
    for _ in range(6):
        reconciler.round()
        place.ports.clock.sleep(25)
        with pytest.raises(StoreFullError):
            place.gateway.put_batch("j", "me", sent(order)["books"][0])
    store.is_full = False
    reconciler.round()
    outcome = place.gateway.status("j", "me").outcome
    assert outcome is not None
    assert outcome.state == "expired"
