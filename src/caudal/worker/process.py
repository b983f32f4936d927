"""One worker process, from its start to its end.

Rules
1. Kernels are compiled, and models of cluster.toml loaded (models.py), before the worker connects.
   So a worker that has taken a task computes it at once.
2. One thread works (jobs/loops.py), the broker's own thread answers heartbeats, and the main
   thread ticks and handles signals. So a long computation neither loses the connection nor looks
   stuck. A frozen process does both.
3. When asked to stop, the worker takes no more tasks and finishes those that it holds. After some
   seconds the computation is interrupted and its task is handed back. If that has no effect, the
   task is abandoned: the process ends, and the broker delivers the task to another worker.
4. An unexpected error is logged with its traceback, the task is handed back, and the worker
   continues: one bad task must not end all workers, one after the other. If the error returns with
   every delivery, the job fails (jobs/execute.py).
5. A worker that holds too much memory between two tasks frees what it can. If that is not enough,
   it ends, and its medic (or `caudal worker` itself) starts it again. So no task has less memory
   because of an earlier one.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from caudal.broker.port import BrokerError, OpenedBroker
from caudal.duck.containment import held_bytes, memory_bound
from caudal.errors import StoreError
from caudal.jobs import loops
from caudal.jobs.await_services import FIRST_SECONDS, waited_for
from caudal.jobs.ports import Bounds, Ports
from caudal.jobs.runs import JobRuns
from caudal.kernels.sentiment import SentimentModel
from caudal.process.clock import SystemClock, new_id
from caudal.process.frame import ProcessExit, run_framed
from caudal.process.logs import fields
from caudal.process.signals import Stop
from caudal.process.ticks import OnTick, ignore
from caudal.store.port import Store
from caudal.store.probe import require_conditional_create
from caudal.worker.compute import LocalCompute
from caudal.worker.figures import WorkerMetrics
from caudal.worker.settings import WorkerSettings
from caudal.worker.suspect_tasks import Suspects
from caudal.worker.task_facts import TaskFactsLog
from caudal.worker.task_log import TaskLog
from caudal.worker.warm_up import warm_up

_ALONG_BYTES = 1 << 20
_IDLE_SECONDS = 0.01  # brokers decide how often an idle worker looks; this must not delay it
_STRANGE_SECONDS = 1.0  # pause after an unexpected error

_log = logging.getLogger(__name__)


@dataclass
class Worker:
    """One worker. `open_store` may raise StoreError while the store is unreachable."""

    settings: WorkerSettings
    open_store: Callable[[], Store]
    broker: OpenedBroker
    folder: Path
    figures: WorkerMetrics
    stop: Stop
    models: Mapping[str, SentimentModel] = field(default_factory=dict)  # already loaded
    store_passed: Path | None = None  # see store/probe.py

    def __post_init__(self) -> None:
        self._clock = SystemClock(self.stop)
        self._hurry = threading.Event()
        self._compute = LocalCompute(
            self.settings.limits(self.folder),
            Suspects(self.settings.suspect_limits(), self.folder, self._hurry),
            self.models,
            confirms=True,
        )
        self._idle_bytes = 0
        self.on_ready: Callable[[], None] = lambda: None  # called when it begins to take tasks
        self.outgrown = False  # it ended because it held too much memory (rule 5)

    def run(self, on_tick: OnTick = ignore) -> ProcessExit:
        """Work until asked to stop. If this returns ABANDONED, the caller must end the process."""
        ending = run_framed(
            self._work,
            self.stop,
            on_tick=on_tick,
            on_late=self._interrupt,
            late_seconds=self.settings.late_seconds,
            grace_seconds=self.settings.grace_seconds,
        )
        if ending is ProcessExit.ABANDONED:
            _log.warning("ended in the middle of a task", extra=fields(reason=self.stop.reason))
        return ending

    def _interrupt(self) -> None:
        self._hurry.set()
        self._compute.interrupt()

    def _work(self) -> None:
        with ExitStack() as held:
            held.enter_context(memory_bound(self.settings.memory_bytes, tasks=True))
            held.callback(self._compute.close)
            warm_up(self._compute)
            self._idle_bytes = self.settings.idle_bytes(held_bytes())
            held.callback(self.broker.close)
            store = self._reached()
            if store is not None and not self.stop.requested():
                _log.info("ready", extra=self._about())
                self._loop(store)
        _log.info("stopped", extra=fields(reason=self.stop.reason))

    def _ends(self, ports: Ports) -> bool:
        """Return, between two tasks, whether to end: if asked to, or by rule 5."""
        if self.stop.requested() or held_bytes() <= self._idle_bytes:
            return self.stop.requested()
        ports.job_runs.forget()
        self._compute.relieve()
        if (held := held_bytes()) > self._idle_bytes:
            self.outgrown = True
            _log.warning(
                "replaced: it holds too much memory while idle", extra=fields(held_bytes=held)
            )
            self.stop.request("it held too much memory between two tasks")
        return self.stop.requested()

    def _about(self) -> dict[str, Any]:
        lanes = ",".join(self.settings.lanes)
        return fields(lanes=lanes, metrics_port=self.settings.metrics_port)

    def _reached(self) -> Store | None:
        """Wait for store and broker; return the store, or None if asked to stop before."""
        wait = self.settings.wait_seconds
        store = waited_for(
            "store", self._probed, StoreError, self._clock, self.stop.requested, seconds=wait
        )
        if store is not None:
            waited_for(
                "broker",
                self.broker.depths,
                BrokerError,
                self._clock,
                self.stop.requested,
                seconds=wait,
                most_seconds=FIRST_SECONDS,  # the broker's link paces its attempts itself
            )
        return store

    def _probed(self) -> Store:
        store = self.open_store()
        require_conditional_create(store, self.store_passed)
        return store

    def _loop(self, store: Store) -> None:
        facts = TaskFactsLog(store, self.settings.name, new_id())
        facts.start()
        try:
            self._loop_with(store, TaskLog(self.figures, facts))
        finally:
            facts.close()

    def _loop_with(self, store: Store, log: TaskLog) -> None:
        ports = Ports(
            store=store,
            broker=self.broker,
            compute=self._compute,
            clock=self._clock,
            new_id=new_id,
            job_runs=JobRuns(store),
            bounds=Bounds(
                quick=self.settings.quick, along_bytes=_ALONG_BYTES, idle_seconds=_IDLE_SECONDS
            ),
            events=log,
        )
        self.figures.watch_broker(lambda: self.broker.connected, lambda: self.broker.dropped)
        while not self.stop.requested():
            consumer = self.broker.consume(*self.settings.turns())
            self.on_ready()
            try:
                loops.work(ports, consumer, lambda: self._ends(ports))
            except Exception:
                _log.exception("unexpected error: please report it")
                consumer.close()
                self._clock.sleep(_STRANGE_SECONDS)
