"""Many things at a time: results in order, and an end to all of it after an error or Ctrl-C."""

import threading

import pytest
from tests.harness.waiting import GUARD_SECONDS

from caudal.series import parallel
from caudal.series.parallel import WorkerPool


def test_results_come_in_the_order_of_the_items() -> None:
    for threads in (1, 4):
        assert WorkerPool(threads).each(lambda item: item * item, range(50)) == [
            item * item for item in range(50)
        ]


def test_after_an_error_no_item_is_begun() -> None:
    begun = []

    def do(item: int) -> None:
        begun.append(item)
        raise ValueError(item)

    with pytest.raises(ValueError, match=r"[01]"):
        WorkerPool(2).each(do, range(50))
    assert len(begun) <= 2


def test_after_ctrl_c_no_item_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()
    done = []

    def do(item: int) -> None:
        begun.release()
        assert go_on.wait(GUARD_SECONDS)
        done.append(item)

    def interrupted(futures: object) -> None:
        assert all(begun.acquire(timeout=GUARD_SECONDS) for _ in range(2))
        raise KeyboardInterrupt

    monkeypatch.setattr(parallel, "wait", interrupted)
    workers = WorkerPool(2)
    with pytest.raises(KeyboardInterrupt):
        workers.each(do, range(50))
    go_on.set()
    assert workers._pool is not None
    workers._pool.shutdown()
    assert sorted(done) == [0, 1]
