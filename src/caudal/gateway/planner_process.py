"""One planning child process, as the gateway sees it: asked, watched, killed if it takes too much.

The rules are those of planners.py.
"""

import contextlib
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from caudal import errors
from caudal.decoding import msgpack_decoder
from caudal.gateway import planner_child
from caudal.gateway.planner_child import (
    LENGTH,
    Answer,
    Ask,
    PlanFailed,
    PlanMade,
    Ready,
    RowsMade,
    SelectRequest,
    TaskMade,
    TaskRequest,
)
from caudal.gateway.start_patience import StartPatience
from caudal.jobs.interfaces import BusyError
from caudal.process.logs import fields
from caudal.process.records import cpu_seconds_of
from caudal.worker.suspect_child import kind_name
from caudal.worker.suspects import held_bytes

HINT = "write simpler queries, or fewer of them at once"
MOMENT_SECONDS = 1.0  # rule 4
_LOW_PRIORITY = 15
_SAMPLE_MILLISECONDS = 20
_MOST_OUTPUT_BYTES = 64 << 20  # of early rows; see jobs/so_far.py for their inputs
_SLACK_BYTES = 64 << 10  # of an answer, beside the plan
_OURS = (
    *(errors.UsageError, errors.ApplicationError, errors.DataError, errors.QueryError),
    *(errors.MissingPackageError, errors.FormatError),
)

_DECODER: msgspec.msgpack.Decoder[Answer] = msgpack_decoder(Answer)

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


class KilledError(Exception):
    """The child was killed from outside: try another one."""


class PlannerProcess:
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
        answer = self._answer(None)
        if not isinstance(answer, Ready):
            raise BusyError("a planner's first message was not `ready`")
        self._base_bytes = held_bytes(self._process.pid)
        self.usable = True

    def ask(self, ask: Ask) -> PlanMade | RowsMade | TaskMade:
        """Raise the child's error, QueryError if it takes too much, KilledError, BusyError."""
        self.usable = False
        self._send(msgspec.msgpack.encode(ask))
        answer = self._answer(ask)
        self._plans += 1
        self.usable = self.usable and self._plans < self._limits.plans_per_child
        match answer:
            case PlanFailed():
                raise _error_of(answer)
            case Ready():
                self.usable = False
                raise KilledError
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
            raise KilledError from error

    def _answer(self, ask: Ask | None) -> Answer:
        """Return the next frame. Check the child's memory and time while waiting."""
        starting = StartPatience()
        assert self._process.stdout is not None
        answer_bytes = self._limits.plan_bytes
        if isinstance(ask, TaskRequest):
            answer_bytes = _MOST_OUTPUT_BYTES
        most = LENGTH.size + answer_bytes + _SLACK_BYTES
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
                    raise too_much(ask, f"an answer of more than {answer_bytes} bytes")
            if ask is not None and self._grown_bytes() > ask.memory_bytes:
                raise too_much(ask, f"more than {ask.memory_bytes >> 20} MiB of memory")
            now = time.monotonic()
            passed = now - began
            if ask is None and starting.is_over(now, cpu_seconds_of(self._process.pid)):
                raise BusyError("it made no progress, or computed for too long")
            if ask is not None and passed > self._limits.patience_seconds:
                raise BusyError("planning took too long on this busy machine: try again later")
            may_slow = ask is not None and not isinstance(ask, TaskRequest)  # rule 4
            if may_slow and not slowed and passed > MOMENT_SECONDS:
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
            return too_much(ask, f"more than {ask.cpu_seconds} s of CPU time")
        if ending in (signal.SIGABRT, signal.SIGSEGV, signal.SIGFPE, signal.SIGILL, signal.SIGBUS):
            return PlanExcessError(f"{_work(ask)} crashes DuckDB: {HINT}")
        return KilledError()


def _is_whole(data: bytearray) -> bool:
    size = LENGTH.size
    return len(data) >= size and len(data) - size >= LENGTH.unpack_from(data)[0]


def too_much(ask: Ask | None, what: str) -> PlanExcessError:
    return PlanExcessError(f"{_work(ask)} takes {what}: {HINT}")


def _work(ask: Ask | None) -> str:
    if isinstance(ask, TaskRequest):
        return "what the query shows early"
    return "this SELECT" if isinstance(ask, SelectRequest) else "planning these queries"


def _error_of(raised: PlanFailed) -> Exception:
    """Return the child's error if it is one of Caudal's classes; else a general error, logged."""
    known = next((one for one in _OURS if kind_name(one) in raised.kinds[0]), None)
    if known is not None:
        return known(raised.message)
    if raised.memory:
        return PlanExcessError(f"planning these queries takes too much memory: {HINT}")
    kind = raised.kinds[0][0].rpartition(".")[2]
    _log.error("a request cannot be planned", extra=fields(reason=f"{kind}: {raised.message}"))
    return errors.ApplicationError(f"the application cannot be planned ({kind})")
