"""Planning in child processes: a few hundred bytes of SQL can keep DuckDB or the planner busy for
hours. The same children run SELECTs over results, for the same reason.

Rules
1. A few warm children wait for requests, so that a plan needs no process start. Each child works
   on one request at a time.
2. A request that takes too much CPU time or memory, or crashes its child, is refused with that
   reason: it would do the same anywhere. If a child was killed from outside, or made no progress
   because the machine is busy, the request is not to blame: the client is told to try again.
3. A child is replaced after any of these events, and after a number of plans, so that its memory
   does not grow.
4. A plan that takes longer than a moment continues at low priority: it is likely to be refused.
5. Data from a child is bounded in size and decoded with a strict type. Errors arrive as names;
   only Caudal's own error classes are raised here.
"""

import contextlib
import logging
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import pyarrow as pa

from caudal import errors
from caudal.formats.job import Request
from caudal.formats.streams import Terms, read_rows
from caudal.gateway import planner_child
from caudal.gateway.planner_child import (
    LENGTH,
    Answer,
    Ask,
    PlanFailed,
    PlanMade,
    PlanRequest,
    Ready,
    RowsMade,
    SelectRequest,
    bytes_of,
)
from caudal.gateway.select_rows import CPU_SECONDS, MOST_ANSWER_BYTES, MOST_ROWS, SelectedRows
from caudal.jobs.interfaces import BusyError, Planned
from caudal.process.logs import fields
from caudal.worker.suspect_child import kind_name
from caudal.worker.suspects import held_bytes

_SAMPLE_MILLISECONDS = 20
_MOMENT_SECONDS, _LOW_PRIORITY = 1.0, 15  # rule 4
_START_SECONDS = 60.0
_SLACK_BYTES = 64 << 10  # of an answer, beside the plan
_TRIES = 2  # a request is not refused because its child was killed from outside
_OURS = (
    *(errors.UsageError, errors.ApplicationError, errors.DataError, errors.QueryError),
    *(errors.MissingPackageError, errors.FormatError),
)
_HINT = "write simpler queries, or fewer of them at once"

_ROWS = Terms(bytes=2 * MOST_ANSWER_BYTES, rows=MOST_ROWS, nested=True, compressed=False)
_Made = TypeVar("_Made", PlanMade, RowsMade)

_DECODER: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlanLimits:
    """Limits of planning one request."""

    sql_bytes: int = 256 << 10  # all SQL texts of an application
    cpu_seconds: int = 3  # shipped applications take a quarter of a second
    memory_bytes: int = 512 << 20  # beyond the memory of a warm child
    plan_bytes: int = 8 << 20  # encoded plan: every worker reads it
    patience_seconds: float = 60.0  # wall time; beyond it the client is told to try again
    plans_per_child: int = 200


class PlanExcessError(errors.QueryError):
    """Planning these queries exceeds its limits, wherever they are planned."""


class _KilledError(Exception):
    """The child was killed from outside: try another one."""


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
        self._idle: queue.SimpleQueue[_Child] = queue.SimpleQueue()
        self._wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._all: set[_Child] = set()
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
            raise _too_much(ask, f"a plan of {len(made.plan)} bytes")
        return Planned(made.tables, made.plan)

    def select(self, sql: str, relations: Mapping[str, pa.Table]) -> SelectedRows:
        """Return the rows of a SELECT over small tables; see select_rows.py."""
        streams = {name: bytes_of(rows) for name, rows in relations.items()}
        ask = SelectRequest(sql, streams, CPU_SECONDS + 1, self._limits.memory_bytes)
        made = self._ask(ask, RowsMade)
        return SelectedRows(read_rows(made.rows, "the answer of a child", _ROWS), made.cut)

    def _ask(self, ask: Ask, kind: type[_Made]) -> _Made:
        for _ in range(_TRIES):
            child = self._free_child()
            try:
                answer = child.ask(ask)
            except _KilledError:
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
            raise errors.ApplicationError(f"{size} bytes of SQL, the limit is {most}: {_HINT}")

    def _free_child(self) -> "_Child":
        try:
            return self._idle.get(timeout=self._wait_seconds)
        except queue.Empty:
            raise BusyError("too many jobs are being planned here: try again in a moment") from None

    def _give_back(self, child: "_Child") -> None:
        if child.usable:
            self._idle.put(child)
            return
        child.kill()
        with self._lock:
            self._all.discard(child)
        self._wanted.put(True)

    def _keep(self) -> None:
        while self._wanted.get():
            child = _Child(self._limits, self._models)
            with self._lock:
                self._all.add(child)
                closed = self._closed
            if closed:
                child.kill()
                return
            try:
                child.wait_until_ready()
                self._idle.put(child)
            except (OSError, _KilledError, BusyError, errors.CaudalError) as error:
                if self._closed:  # it was killed by `close`
                    return
                _log.warning("a planner did not start", extra=fields(reason=str(error)))
                time.sleep(_MOMENT_SECONDS)
                self._give_back(child)


class _Child:
    """One child process. Only one thread at a time may use it."""

    def __init__(self, limits: PlanLimits, models: Sequence[str]) -> None:
        self._limits = limits
        self._plans = 0
        self._base_bytes = 0  # memory of the warm child
        self.usable = False
        self._process = subprocess.Popen(
            [sys.executable, "-P", planner_child.__file__, str(os.getpid()), *models],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the parent
        )

    def wait_until_ready(self) -> None:
        answer = self._answer(_START_SECONDS, None)
        if not isinstance(answer, Ready):
            raise BusyError("a planner's first message was not `ready`")
        self._base_bytes = held_bytes(self._process.pid)
        self.usable = True

    def ask(self, ask: Ask) -> PlanMade | RowsMade:
        """Raise the child's error, QueryError if it takes too much, _KilledError, BusyError."""
        self.usable = False
        self._send(msgspec.msgpack.encode(ask))
        answer = self._answer(self._limits.patience_seconds, ask)
        self._plans += 1
        self.usable = self.usable and self._plans < self._limits.plans_per_child
        match answer:
            case PlanFailed():
                raise _error_of(answer)
            case Ready():
                self.usable = False
                raise _KilledError
            case _:
                return answer

    def kill(self) -> None:
        self.usable = False
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(LENGTH.pack(len(data)) + data)
            self._process.stdin.flush()
        except OSError as error:
            raise _KilledError from error

    def _answer(self, seconds: float, ask: Ask | None) -> Answer:
        """Return the next frame. Check the child's memory and time while waiting."""
        assert self._process.stdout is not None
        most = LENGTH.size + self._limits.plan_bytes + _SLACK_BYTES
        file, data, began = self._process.stdout.fileno(), bytearray(), time.monotonic()
        slowed = False
        poller = select.poll()
        poller.register(file, select.POLLIN)
        while not _is_whole(data):
            if poller.poll(_SAMPLE_MILLISECONDS):
                piece = os.read(file, 1 << 20)
                if not piece:
                    raise self._end(ask)
                data += piece
                if len(data) > most:
                    raise _too_much(ask, f"an answer of more than {self._limits.plan_bytes} bytes")
            if ask is not None and self._grown_bytes() > ask.memory_bytes:
                raise _too_much(ask, f"more than {ask.memory_bytes >> 20} MiB of memory")
            passed = time.monotonic() - began
            if passed > seconds:
                raise BusyError("planning took too long on this busy machine: try again later")
            if ask is not None and not slowed and passed > _MOMENT_SECONDS:
                slowed = True
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, self._process.pid, _LOW_PRIORITY)
        self.usable = not slowed  # its priority cannot be raised again
        return _DECODER.decode(data[LENGTH.size :])

    def _grown_bytes(self) -> int:
        """Return the memory that this request has added."""
        return held_bytes(self._process.pid) - self._base_bytes

    def _end(self, ask: Ask | None) -> Exception:
        """Return the error that stands for the way in which the child ended."""
        ending = -self._process.wait()
        if ending == signal.SIGXCPU and ask is not None:
            return _too_much(ask, f"more than {ask.cpu_seconds} s of CPU time")
        if ending in (signal.SIGABRT, signal.SIGSEGV, signal.SIGFPE, signal.SIGILL, signal.SIGBUS):
            return PlanExcessError(f"{_work(ask)} crashes DuckDB: {_HINT}")
        return _KilledError()


def _is_whole(data: bytearray) -> bool:
    size = LENGTH.size
    return len(data) >= size and len(data) - size >= LENGTH.unpack_from(data)[0]


def _too_much(ask: Ask | None, what: str) -> PlanExcessError:
    return PlanExcessError(f"{_work(ask)} takes {what}: {_HINT}")


def _work(ask: Ask | None) -> str:
    return "this SELECT" if isinstance(ask, SelectRequest) else "planning these queries"


def _error_of(raised: PlanFailed) -> Exception:
    """Return the child's error if it is one of Caudal's classes; else a general error, logged."""
    known = next((one for one in _OURS if kind_name(one) in raised.kinds[0]), None)
    if known is not None:
        return known(raised.message)
    if raised.memory:
        return PlanExcessError(f"planning these queries takes too much memory: {_HINT}")
    kind = raised.kinds[0][0].rpartition(".")[2]
    _log.error("a request cannot be planned", extra=fields(reason=f"{kind}: {raised.message}"))
    return errors.ApplicationError(f"the application cannot be planned ({kind})")
