"""Writes what the worker did into the store, for the page. Losing it costs pixels only.

Rules
1. A thread of its own writes, every few seconds and only if there is something new. So no task
   waits for it, and an idle worker writes nothing.
2. What waits is bounded, and so is what one worker writes about one run: later tasks of a very long
   run are not shown.
3. If the store does not answer, the facts are dropped.
"""

import time
from collections import Counter
from threading import Event, Lock, Thread

from caudal.broker.port import Delivery
from caudal.errors import AlreadyExistsError, StoreError
from caudal.formats.keys import Keys
from caudal.formats.task_facts import TaskFact, TaskFacts, encode_tasks
from caudal.jobs.events import TaskEnd, TaskReport
from caudal.store.port import Store

PAUSE_SECONDS = 2.0
MOST_WAITING = 1_000  # facts
MOST_PER_RUN = 20_000  # facts of one worker
_KNOWN_RUNS = 1_000

Run = tuple[str, str]  # job and run


class TaskFactsLog:
    """The facts of one worker process."""

    def __init__(self, store: Store, worker: str, session: str) -> None:
        self._store, self._worker, self._session = store, worker, session
        self._lock = Lock()
        self._waiting: list[tuple[Run, TaskFact]] = []
        self._written: Counter[Run] = Counter()
        self._began = 0.0
        self._stop = Event()
        self._thread = Thread(target=self._write, name="facts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Write what waits, and end."""
        self._stop.set()
        self._thread.join(PAUSE_SECONDS)

    def began(self, delivery: Delivery) -> None:
        """See TaskEvents."""
        del delivery
        self._began = time.time()

    def ended(self, report: TaskReport) -> None:
        """See TaskEvents."""
        if report.end is TaskEnd.SKIPPED:
            return
        message = report.delivery.message
        run = message.job, message.run
        with self._lock:
            if len(self._waiting) < MOST_WAITING and self._written[run] < MOST_PER_RUN:
                self._written[run] += 1
                self._waiting.append((run, self._fact(report)))
            if len(self._written) > _KNOWN_RUNS:
                self._written.clear()

    def _fact(self, report: TaskReport) -> TaskFact:
        task = report.delivery.message.task
        return TaskFact(
            kind=task.kind,
            name=task.name,
            number=task.number,
            worker=self._worker,
            began=round(self._began, 3),
            ended=round(time.time(), 3),
            end=report.end.value,
            deliveries=report.delivery.count,
            bytes_in=report.bytes_in,
            bytes_out=report.bytes_out,
            stages=report.stages,
            reason=(report.reason or "")[:200],
        )

    def _write(self) -> None:
        while not self._stop.wait(PAUSE_SECONDS):
            self.flush()
        self.flush()

    def flush(self) -> None:
        """Write what waits: one object for each run."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        runs: dict[Run, list[TaskFact]] = {}
        for run, fact in waiting:
            runs.setdefault(run, []).append(fact)
        for run, facts in runs.items():
            key = f"{Keys(*run).facts()}{int(time.time() * 1000):013}-{self._session}"
            try:
                self._store.create(key, encode_tasks(TaskFacts(tuple(facts))), lasting=False)
            except (StoreError, AlreadyExistsError):
                continue
