"""What a worker process answers to probes, from its start to its end."""

import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.harness.hand_clock import HandClock
from tests.harness.waiting import GUARD_SECONDS

from caudal.cli import worker_process
from caudal.process.frame import ProcessExit
from caudal.process.ticks import HANGING_SECONDS, LastTick, OnTick, Tick
from caudal.worker.figures import WorkerMetrics
from caudal.worker.settings import WorkerSettings


def test_it_takes_tasks_while_its_broker_is_connected() -> None:
    figures, connected = WorkerMetrics(), [True]
    figures.watch_broker(lambda: connected[0], lambda: 0)
    found = [figures.takes_tasks]
    figures.ready = True
    for now in (True, False, True):
        connected[0] = now
        found.append(figures.takes_tasks)
    assert found == [False, True, False, True]


def test_it_is_dead_while_its_loop_hangs_but_not_while_it_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()
    told: list[tuple[int, int]] = []  # /healthz, /readyz

    class Worker:
        """Stands for a worker: it loads for long, then its loop ticks, hangs and ticks again."""

        outgrown = False

        def __init__(self, settings: WorkerSettings, *rest: Any) -> None:
            self.port, self.figures = settings.metrics_port, rest[3]
            self.on_ready: Callable[[], None] = lambda: None

        def run(self, on_tick: OnTick) -> ProcessExit:
            clock.time += 10 * HANGING_SECONDS
            self.ask()
            on_tick(Tick(1, 0.0))
            self.figures.watch_broker(lambda: True, lambda: 0)
            self.on_ready()
            self.ask()
            clock.time += HANGING_SECONDS + 1
            self.ask()
            on_tick(Tick(2, HANGING_SECONDS))
            self.ask()
            return ProcessExit.COMPLETE

        def ask(self) -> None:
            told.append((status(self.port, "/healthz"), status(self.port, "/readyz")))

    monkeypatch.setattr(worker_process, "Worker", Worker)
    monkeypatch.setattr(worker_process, "LastTick", partial(LastTick, clock.elapsed))
    monkeypatch.setattr(worker_process, "set_up_logs", lambda *_: None)
    worker_process.work(
        store="memory:",
        broker="memory:",
        name="w",
        tasks="map",
        quick=False,
        memory_limit="700MB",
        workspace=tmp_path,
        wait=None,
        metrics_port=0,
        metrics_token_file=None,
        sentiment=[],
        log_format="json",
        fsync=False,
        beating=None,
    )
    assert told == [(200, 503), (200, 200), (503, 503), (200, 200)]


def status(port: int | None, path: str) -> int:
    try:
        where = f"http://127.0.0.1:{port}{path}"
        with urllib.request.urlopen(where, timeout=GUARD_SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code
