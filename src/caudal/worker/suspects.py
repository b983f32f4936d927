"""Suspect tasks: a task that may have killed its workers runs alone in a child process.

Rules
1. A high delivery count is only a suspicion, because kills from outside raise it too
   (`is_suspect`). The verdict comes from a child process that its parent watched from start to end.
2. A task is Condemned if its child, after it began to compute, crashed (by a signal that faulty
   code causes itself) or exceeded its limits of memory or CPU time.
3. A task is Failed if its computation raised an error that it would raise everywhere: a
   `QueryError`, `DataError` or `ApplicationError` (DuckDB's out-of-memory is one of them), or a
   `FormatError`: an input that is still damaged after so many deliveries stays damaged. An
   unexpected error means Condemned: a fresh process met it too, and would meet it again.
4. Everything else is Inconclusive: the task is not to blame and is tried again. That is the case
   for SIGKILL (by an operator, a medic, or the kernel short of memory), SIGTERM and similar
   signals, SIGBUS and SIGSYS (a disk error below mapped memory, a container's rules), a child that
   did not begin, errors of disk and store, modules that cannot be imported, and `UsageError`.
   Requests are checked before tasks are made, so a worker with a `UsageError` lacks a model that
   other workers have.
5. A report of the child counts more than the way in which the child ended.
6. Nothing is pickled. The computation is a function of a module, named by reference in our own
   code and imported by the child. Arguments are bytes; inputs and output are files in a private
   folder.
7. The child never outlives `run_suspect`. It is killed on every exit path, and by the kernel if the
   calling thread dies with its process. In that case the owner of `workspace` deletes the folder.

Limits
- Memory is what the child really holds (anonymous, shared and swapped pages), sampled by the
  parent. Address space or RLIMIT_DATA would condemn innocent tasks: Arrow's allocator reserves
  1 GiB at its first buffer, and was seen with 5.1 GiB of data of which 0.6 GiB were in use.
- RLIMIT_DATA is set as well, to twice the limit plus 2 GiB. It stops a child that grows faster
  than the samples, or outlives a frozen parent. A child that reaches it has certainly exceeded the
  limit. It then ends with MemoryError or abort().
- CPU time is the kernel's count (RLIMIT_CPU, SIGXCPU). Time in which the child is stopped or waits
  for a processor does not count.
- Wall time is bounded too; otherwise a deadlock would block the worker for ever. Exceeding it is
  Inconclusive, never Condemned.
"""

import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import msgspec

from caudal import errors
from caudal.decoding import json_decoder
from caudal.duck.database import DuckDBIOError
from caudal.worker import suspect_child
from caudal.worker.suspect_child import Computation, kind_name

_BLAMED = (errors.QueryError, errors.DataError, errors.ApplicationError, errors.FormatError)
_PASSING = (
    *(OSError, ImportError, errors.StoreError, errors.BrokerError, errors.UsageError),
    errors.MissingPackageError,
)
_CRASHES = frozenset((signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGTRAP))
_SAMPLE_MILLISECONDS = 20
_WORDS_BYTES = 4_000
_TOLD = 300  # most characters of an unexpected error in a reason


@dataclass(frozen=True)
class SuspectLimits:
    """The limits of a suspect. It runs alone, so it may use all memory of its worker."""

    memory_bytes: int = 2 << 30  # of the whole child; its start takes about 100 MiB of it
    cpu_seconds: int = 600  # of the computation, over all its threads
    patience_seconds: float = 1_500.0  # wall time; below RabbitMQ's half hour for a message

    @property
    def data_bytes(self) -> int:
        return 2 * self.memory_bytes + (2 << 30)


@dataclass(frozen=True)
class SuspectCall:
    """A computation and its inputs.

    `compute` is a function at the top level of an importable module. It is called with `arguments`
    and a private folder. The folder holds every input under its name, and the function may spill
    there. An input that is a `Path` is linked, not copied.
    """

    compute: Computation
    arguments: bytes = b""
    inputs: Mapping[str, bytes | Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        module, name = self.compute.__module__, self.compute.__qualname__
        if module == "__main__" or not name.isidentifier():
            raise ValueError(f"{module}:{name} cannot be imported by a child process")
        for file in self.inputs:
            if file in ("", "..") or file != Path(file).name:
                raise ValueError(f"'{file}' is not a plain file name")

    @property
    def entry(self) -> str:
        return f"{self.compute.__module__}:{self.compute.__qualname__}"


@dataclass(frozen=True)
class Finished:
    """The task succeeded. Its output is stored like any other."""

    output: bytes


@dataclass(frozen=True)
class Failed:
    """The computation raised `error`, as on every machine. The job fails with that reason."""

    error: errors.CaudalError


@dataclass(frozen=True)
class Condemned:
    """The task kills every worker. The job fails with this reason; `words` are for the log."""

    reason: str
    words: str = ""


@dataclass(frozen=True)
class Inconclusive:
    """Nothing is known about the task. Hand it back and try again, after a pause."""

    reason: str
    words: str = ""


Verdict = Finished | Failed | Condemned | Inconclusive


def run_suspect(
    call: SuspectCall,
    limits: SuspectLimits,
    *,
    workspace: Path | None = None,
    stop: Sequence[threading.Event] = (),
) -> Verdict:
    """Run a suspect in a child process and judge it. This blocks: keep it off event loops.

    Setting any `stop` kills the child, and the verdict is Inconclusive. The private folder is
    created in `workspace`, whose owner empties it at its start.

    1. Write arguments and inputs into a private folder.
    2. Start the child, and watch it until it ends or must be ended.
    3. Kill it if it still lives, and reap it, even after an error here.
    4. Only then read its report, and judge.
    """
    try:
        with tempfile.TemporaryDirectory(
            prefix="caudal-suspect-", dir=workspace, ignore_cleanup_errors=True
        ) as name:
            _lay_out(call, Path(name))
            account = _observe(call, limits, Path(name), stop)
            return _judge(account, limits, Path(name))
    except OSError as error:
        return Inconclusive(f"the suspect's child could not be run: {error}")


class CutShort(StrEnum):
    """The reason why the parent ended its child."""

    STOPPED = "the worker was told to stop"
    IMPATIENT = "the child took too much wall time"
    MEMORY = "the child held too much memory"


class Begun(msgspec.Struct, frozen=True, tag_field="event", tag="begun"):
    """The computation is about to be called."""


class Done(msgspec.Struct, frozen=True, tag_field="event", tag="done"):
    """The output is written."""

    size: int


class Raised(msgspec.Struct, frozen=True, tag_field="event", tag="raised"):
    """The computation, or writing its output, raised an error."""

    kinds: tuple[tuple[str, ...], ...]  # of the error and its causes: the class and its bases
    message: str
    memory: bool  # whether one of them means that memory was refused

    def is_a(self, kind: type[BaseException]) -> bool:
        return kind_name(kind) in self.kinds[0]

    def comes_from(self, kind: type[BaseException]) -> bool:
        return any(kind_name(kind) in bases for bases in self.kinds)


Report = Begun | Done | Raised
_REPORTS: msgspec.json.Decoder[Report] = json_decoder(Report)


@dataclass(frozen=True)
class _Account:
    """All that the parent knows after the child has ended."""

    report: Report | None  # the last one
    status: int  # as in subprocess: negative for a signal
    cut: CutShort | None
    words: str  # the child's standard output and error


def _lay_out(call: SuspectCall, folder: Path) -> None:
    (folder / suspect_child.ARGUMENTS).write_bytes(call.arguments)
    inputs = folder / suspect_child.INPUTS
    inputs.mkdir()
    for name, content in call.inputs.items():
        if isinstance(content, Path):
            (inputs / name).symlink_to(content.absolute())
        else:
            (inputs / name).write_bytes(content)


def _observe(
    call: SuspectCall, limits: SuspectLimits, folder: Path, stop: Sequence[threading.Event]
) -> _Account:
    with (folder / "words").open("w+b") as words:
        child = subprocess.Popen(
            _command(call, limits, folder),
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the parent
        )
        try:
            cut = _watch(child.pid, limits, stop)
        finally:
            child.kill()
            status = child.wait()
        return _Account(_last_report(folder), status, cut, _tail(words.fileno()))


def _command(call: SuspectCall, limits: SuspectLimits, folder: Path) -> list[str]:
    numbers = (limits.cpu_seconds, limits.data_bytes)
    script = [sys.executable, "-P", "-X", "faulthandler", suspect_child.__file__]
    return [*script, str(os.getpid()), str(folder), call.entry, *map(str, numbers)]


def _watch(pid: int, limits: SuspectLimits, stop: Sequence[threading.Event]) -> CutShort | None:
    """Wait until the child ends by itself, or there is a reason to end it."""
    deadline = time.monotonic() + limits.patience_seconds
    process = os.pidfd_open(pid)
    try:
        poller = select.poll()
        poller.register(process, select.POLLIN)
        while not poller.poll(_SAMPLE_MILLISECONDS):
            if any(one.is_set() for one in stop):
                return CutShort.STOPPED
            if held_bytes(pid) > limits.memory_bytes:
                return CutShort.MEMORY
            if time.monotonic() > deadline:
                return CutShort.IMPATIENT
        return None
    finally:
        os.close(process)


def held_bytes(pid: int) -> int:
    """Return the memory that the process occupies; 0 after its death."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
        values = dict(line.split(":", 1) for line in lines.splitlines())
        held = (values.get(name, "0 kB") for name in ("RssAnon", "RssShmem", "VmSwap"))
        return sum(int(value.split()[0]) << 10 for value in held)
    return 0


def _last_report(folder: Path) -> Report | None:
    """Return the last report; None if there is none, or if its line is incomplete."""
    try:
        lines = (folder / suspect_child.REPORT).read_bytes().splitlines()
        return _REPORTS.decode(lines[-1]) if lines else None
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _tail(file: int) -> str:
    start = max(0, os.fstat(file).st_size - _WORDS_BYTES)
    return os.pread(file, _WORDS_BYTES, start).decode("utf-8", "replace").strip()


def _judge(account: _Account, limits: SuspectLimits, folder: Path) -> Verdict:
    match account.report:
        case Done(size):
            return _finished((folder / suspect_child.OUTPUT).read_bytes(), size)
        case Raised():
            return judge_error(account.report, limits)
        case Begun():
            return _judge_death(account, limits)
        case None:
            return Inconclusive(_no_beginning(account), account.words)


def _no_beginning(account: _Account) -> str:
    """Return why the child did not begin. A Python error has status 1, its message last."""
    message = account.words.rsplit("\n", 1)[-1] if account.status == 1 else ""
    why = account.cut or message or _ending(account.status)
    return f"the suspect's child did not begin: {why}"


def _finished(output: bytes, size: int) -> Verdict:
    if len(output) != size:
        return Inconclusive(f"the output has {len(output)} bytes, and {size} were written")
    return Finished(output)


def judge_error(raised: Raised, limits: SuspectLimits) -> Verdict:
    """Judge an error. Of its causes, only a disk error counts: a query may report it as its own."""
    kind = next((kind for kind in _BLAMED if raised.is_a(kind)), None)
    if kind is not None and not raised.comes_from(DuckDBIOError):
        return Failed(kind(raised.message))
    if kind is None and raised.memory:
        return Condemned(_too_much_memory(limits))
    told = f"{raised.kinds[0][0]}: {raised.message}"
    passing = any(raised.is_a(one) for one in _PASSING) or raised.comes_from(DuckDBIOError)
    if passing or not raised.is_a(Exception):
        return Inconclusive(told)
    return Condemned(f"the task fails with an unexpected error ({' '.join(told.split())[:_TOLD]})")


def _judge_death(account: _Account, limits: SuspectLimits) -> Verdict:
    """Judge the end of a child that had begun and reported nothing more."""
    if account.cut is CutShort.MEMORY:
        return Condemned(_too_much_memory(limits), account.words)
    if account.cut is not None:
        return Inconclusive(account.cut.value, account.words)
    if -account.status == signal.SIGXCPU:
        reason = f"the task needs more than {limits.cpu_seconds} s of CPU time"
        return Condemned(reason, account.words)
    if -account.status in _CRASHES:
        return Condemned(f"the task crashes its process ({_ending(account.status)})", account.words)
    return Inconclusive(f"the suspect's child ended ({_ending(account.status)})", account.words)


def _too_much_memory(limits: SuspectLimits) -> str:
    return f"the task needs more than {math.ceil(limits.memory_bytes / (1 << 20))} MiB of memory"


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with suppress(ValueError):
        return signal.Signals(-status).name
    return f"signal {-status}"
