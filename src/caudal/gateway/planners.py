"""Planning in child processes: a few hundred bytes of SQL can keep DuckDB or the planner busy for
hours. The same children run SELECTs over results and compute early rows, for the same reason.

Rules
1. A few warm children wait for requests, so that a plan needs no process start. Each child works
   on one request at a time.
2. A request that takes too much CPU time or memory, or crashes its child, is refused with that
   reason: it would do the same anywhere. If a child was killed from outside, or made no progress
   because the machine is busy, the request is not to blame: the client is told to try again.
3. A child is replaced after any of these events, and after a number of plans, so that its memory
   does not grow. One that does not become ready is given up by its CPU time (start_patience.py):
   a busy machine only makes it late.
4. A plan that takes longer than a moment continues at low priority: it is likely to be refused.
   Early rows do not: they are seldom (growth.py), and the child would have to be replaced.
5. Data from a child is bounded in size and decoded with a strict type. Errors arrive as names;
   only Caudal's own error classes are raised here.
6. One child is always left for plans: SELECTs and early rows wait for each other.
"""

import logging
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TypeVar

from caudal import errors
from caudal.formats import job as job_format
from caudal.formats.job import Job, Request
from caudal.formats.keys import Task
from caudal.formats.streams import Terms, read_rows
from caudal.gateway.planner_child import (
    EARLY_SECONDS,
    Ask,
    PlanMade,
    PlanRequest,
    RowsMade,
    SelectRequest,
    TaskMade,
    TaskRequest,
)
from caudal.gateway.planner_process import (
    HINT,
    MOMENT_SECONDS,
    KilledError,
    PlanLimits,
    PlannerProcess,
    too_much,
)
from caudal.gateway.select_rows import CPU_SECONDS, MOST_ANSWER_BYTES, MOST_ROWS, SelectedRows
from caudal.jobs.interfaces import BusyError, Inputs, Planned
from caudal.process.logs import fields

_TRIES = 2  # a request is not refused because its child was killed from outside
_ROWS = Terms(bytes=2 * MOST_ANSWER_BYTES, rows=MOST_ROWS, nested=True, compressed=False)
_Made = TypeVar("_Made", PlanMade, RowsMade, TaskMade)

_log = logging.getLogger(__name__)


class Planners:
    """A pool of planning child processes. Thread-safe."""

    def __init__(
        self,
        count: int = 2,
        limits: PlanLimits | None = None,
        *,
        models: Sequence[str] = (),
        wait_seconds: float = 30.0,
    ) -> None:
        self._limits = limits or PlanLimits()
        self._models = tuple(models)
        self._wait_seconds = wait_seconds
        self._idle: queue.SimpleQueue[PlannerProcess] = queue.SimpleQueue()
        self._wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._all: set[PlannerProcess] = set()
        self._aside = threading.BoundedSemaphore(max(1, count - 1))  # rule 6
        self._lock = threading.Lock()
        self._closed = False
        for _ in range(count):
            self._wanted.put(True)
        # Children die with the thread that started them, so this thread lives as long as the pool.
        self._keeper = threading.Thread(target=self._keep, name="planners", daemon=True)
        self._keeper.start()

    def plan(self, request: Request, moment: float) -> Planned:
        """See the port. Raise BusyError if no child is free in time."""
        self._require_short(request)
        ask = PlanRequest(request, moment, self._limits.cpu_seconds, self._limits.memory_bytes)
        made = self._ask(ask, PlanMade)
        if len(made.plan) > self._limits.plan_bytes:
            raise too_much(ask, f"a plan of {len(made.plan)} bytes")
        return Planned(made.tables, made.plan)

    def select(self, sql: str, streams: Mapping[str, bytes]) -> SelectedRows:
        """Return the rows of a SELECT over small tables, which a child unpacks (select_rows.py)."""
        ask = SelectRequest(sql, dict(streams), CPU_SECONDS + 1, self._limits.memory_bytes)
        made = self._ask_aside(ask, RowsMade)
        return SelectedRows(read_rows(made.rows, "the answer of a child", _ROWS), made.cut)

    def run(self, job: Job, task: Task, inputs: Inputs) -> bytes:
        """Return the output of a fold or finish over a part of a job's data."""
        parts = {name: [part.data for part in some] for name, some in inputs.items()}
        limits = EARLY_SECONDS + 1, self._limits.memory_bytes
        ask = TaskRequest(job_format.encode(job), task, parts, *limits)
        return self._ask_aside(ask, TaskMade).output

    def _ask_aside(self, ask: Ask, kind: type[_Made]) -> _Made:
        if not self._aside.acquire(timeout=self._wait_seconds):
            raise BusyError("other rows are being computed here: try again in a moment")
        try:
            return self._ask(ask, kind)
        finally:
            self._aside.release()

    def _ask(self, ask: Ask, kind: type[_Made]) -> _Made:
        for _ in range(_TRIES):
            child = self._free_child()
            try:
                answer = child.ask(ask)
            except KilledError:
                continue
            finally:
                self._give_back(child)
            if isinstance(answer, kind):
                return answer
            raise errors.FormatError("a planner answered another question")
        raise BusyError("planning was interrupted: try again in a moment")

    def close(self) -> None:
        """End every child."""
        with self._lock:
            self._closed = True
            children = list(self._all)
        for child in children:
            child.kill()
        self._wanted.put(False)
        self._keeper.join()

    def _require_short(self, request: Request) -> None:
        text = request.application
        texts = [*(one.sql for one in text.tables), *(one.sql for one in text.queries)]
        size = sum(len(sql.encode()) for sql in texts)
        if size > self._limits.sql_bytes:
            most = self._limits.sql_bytes
            raise errors.ApplicationError(f"{size} bytes of SQL, the limit is {most}: {HINT}")

    def _free_child(self) -> PlannerProcess:
        try:
            return self._idle.get(timeout=self._wait_seconds)
        except queue.Empty:
            raise BusyError("too many jobs are being planned here: try again in a moment") from None

    def _give_back(self, child: PlannerProcess) -> None:
        if child.usable:
            self._idle.put(child)
            return
        child.kill()
        with self._lock:
            self._all.discard(child)
        self._wanted.put(True)

    def _keep(self) -> None:
        while self._wanted.get():
            child = PlannerProcess(self._limits, self._models)
            with self._lock:
                self._all.add(child)
                closed = self._closed
            if closed:
                child.kill()
                return
            try:
                child.wait_until_ready()
                self._idle.put(child)
            except (OSError, KilledError, BusyError, errors.CaudalError) as error:
                if self._closed:  # it was killed by `close`
                    return
                _log.warning("a planner did not start", extra=fields(reason=str(error)))
                time.sleep(MOMENT_SECONDS)
                self._give_back(child)
