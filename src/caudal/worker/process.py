"""One worker process, from its start to its end.

Rules
1. Kernels are compiled before anything is connected: a worker that holds a task computes it at
   once.
2. One thread works (jobs/loops.py), the broker's own thread answers heartbeats, and the main
   thread ticks and hears signals. So a long computation neither loses the connection nor looks
   stuck, while a frozen process loses both.
3. Asked to stop, it takes nothing more and finishes what it holds. After some seconds the
   computation is interrupted and its task handed back; what does not even heed that is abandoned:
   the process ends, and the broker delivers the task to another.
4. An error that nobody foresaw is logged with its place, the task goes back to the broker, and the
   worker goes on: one strange task must not take down every worker, one after the other. If it
   comes back with every delivery, its job fails (jobs/execute.py).
5. A worker that holds too much between two tasks lets go of what it can; if that is not enough, it
   leaves, and whoever looks after it starts it anew (its medic, or `caudal worker` itself). So no
   task has to live with what an earlier one left behind.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caudal.broker.port import BrokerError, OpenedBroker
from caudal.duck.containment import held_bytes, memory_bound
from caudal.errors import StoreError
from caudal.jobs import loops
from caudal.jobs.ports import Bounds, Ports
from caudal.jobs.runs import JobRuns
from caudal.process.clock import SystemClock, new_id
from caudal.process.frame import ProcessExit, run_framed
from caudal.process.logs import fields
from caudal.process.signals import Stop
from caudal.process.ticks import OnTick, ignore
from caudal.store.port import Store
from caudal.store.probe import require_conditional_create
from caudal.worker.await_services import waited_for
from caudal.worker.compute import LocalCompute
from caudal.worker.figures import WorkerMetrics
from caudal.worker.settings import WorkerSettings
from caudal.worker.suspect_tasks import Suspects
from caudal.worker.task_log import TaskLog
from caudal.worker.warm_up import warm_up

_STRANGE_SECONDS = 1.0  # pause after an error that nobody foresaw

_log = logging.getLogger(__name__)


@dataclass
class Worker:
    """One worker. `open_store` may raise StoreError while the store is away."""

    settings: WorkerSettings
    open_store: Callable[[], Store]
    broker: OpenedBroker
    folder: Path
    figures: WorkerMetrics
    stop: Stop

    def __post_init__(self) -> None:
        self._clock = SystemClock(self.stop)
        self._hurry = threading.Event()
        self._compute = LocalCompute(
            self.settings.limits(self.folder),
            Suspects(self.settings.suspect_limits(), self.folder, self._hurry),
            confirms=True,
        )
        self._idle_bytes = 0
        self.on_ready: Callable[[], None] = lambda: None  # called once it takes tasks
        self.outgrown = False  # it left because it held too much (rule 5)

    def run(self, on_tick: OnTick = ignore) -> ProcessExit:
        """Work until asked to stop. If ABANDONED, the caller ends the process."""
        ending = run_framed(
            self._work,
            self.stop,
            on_tick=on_tick,
            on_late=self._interrupt,
            late_seconds=self.settings.late_seconds,
            grace_seconds=self.settings.grace_seconds,
        )
        if ending is ProcessExit.ABANDONED:
            _log.warning("left in the midst of a task", extra=fields(reason=self.stop.reason))
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
        """Asked between two tasks: is this the end? It is for one that holds too much (rule 5)."""
        if self.stop.requested() or held_bytes() <= self._idle_bytes:
            return self.stop.requested()
        ports.job_runs.forget()
        self._compute.relieve()
        if (held := held_bytes()) > self._idle_bytes:
            self.outgrown = True
            _log.warning("replaced: it holds too much while idle", extra=fields(held_bytes=held))
            self.stop.request("it held too much memory between two tasks")
        return self.stop.requested()

    def _about(self) -> dict[str, Any]:
        lanes = ",".join(self.settings.lanes)
        return fields(lanes=lanes, metrics_port=self.settings.metrics_port)

    def _reached(self) -> Store | None:
        """The store, once both store and broker answer; None if asked to stop before."""
        wait = self.settings.wait_seconds
        store = waited_for(
            "store", self._probed, StoreError, self._clock, self.stop.requested, seconds=wait
        )
        if store is not None:
            depths, stopping = self.broker.depths, self.stop.requested
            waited_for("broker", depths, BrokerError, self._clock, stopping, seconds=wait)
        return store

    def _probed(self) -> Store:
        store = self.open_store()
        require_conditional_create(store)
        return store

    def _loop(self, store: Store) -> None:
        ports = Ports(
            store=store,
            broker=self.broker,
            compute=self._compute,
            clock=self._clock,
            new_id=new_id,
            job_runs=JobRuns(store),
            bounds=Bounds(quick=self.settings.quick),
            events=TaskLog(self.figures),
        )
        self.figures.watch_broker(lambda: self.broker.connected, lambda: self.broker.dropped)
        while not self.stop.requested():
            consumer = self.broker.consume(*self.settings.turns())
            self.on_ready()
            try:
                loops.work(ports, consumer, lambda: self._ends(ports))
            except Exception:
                _log.exception("an error that nobody foresaw: please report it")
                consumer.close()
                self._clock.sleep(_STRANGE_SECONDS)
