"""Bounds the memory and time that a user's task may take, including memory that DuckDB ignores.

DuckDB's own limit covers its tables and hash tables. It does not cover the strings and lists of an
expression, nor the Arrow rows of a result: under a limit of 300 MiB, `repeat('x', 2000000000)`
took 4 GiB.

Rules
1. Held memory means private resident memory. It is sampled while calls run. If it exceeds the
   bound, all running calls are interrupted, because memory cannot be attributed to threads: a call
   beside a memory bomb is interrupted with it. There are three ways to get the bound:
   - `memory_bound` sets it for the whole process. If the program that calls Caudal already held
     more than OWN_BYTES, the excess is not counted.
   - Without it, a call may add its own limit and a little more (`allowance`) to what the process
     held when the call began. DuckDB keeps its limit by spilling; the rest is what it ignores.
   - A worker runs the tasks of many clients, one after the other. There a whole task is one call
     (`contained_task`). It may grow by half of the bound, regardless of what the process held when
     it began, because memory left by an earlier task is not its fault.
2. One step of an expression cannot be interrupted. So the kernel (RLIMIT_DATA) refuses allocations
   that would exceed the bound. DuckDB, Arrow and numpy turn a refusal into an error and continue.
   Memory that allocators have mapped but do not use must not count: Arrow was seen with 5.1 GiB
   mapped and 0.6 GiB in use. So each sample sets the limit again, from what is mapped then.
3. RESERVE_BYTES lie between interruption and refusal. Code that is refused its last few bytes may
   crash (starting a thread does). So only large allocations are refused; slow growth is
   interrupted.
4. While no call runs there is no limit: the user did not cause other work of the process.
5. The watcher survives whatever goes wrong in a sample. One that is gone (the process forked) is
   started again. Without a watcher nothing would be bounded.
6. Time is what the call's thread ran, or slept by its own choice (`sleep_ms`). Waiting for a
   processor or a disk does not count, so a loaded machine fails no call.
"""

import contextlib
import ctypes
import gc
import math
import resource
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import duckdb
import pyarrow as pa

from caudal.errors import MemoryExceededError

RESERVE_BYTES = 128 << 20
OWN_BYTES = 256 << 20  # a process that runs only Caudal holds less than this at its start

_SAMPLE_SECONDS = 0.02
_PAGE_BYTES = resource.getpagesize()


class Excess(Enum):
    """The resource that a call used too much of."""

    MEMORY = "memory"
    TIME = "time"


@dataclass
class ContainedCall:
    """One running call, on the thread that made it."""

    interrupt: Callable[[], None]
    memory_bytes: int
    seconds: float
    excess: Excess | None = None
    grown_bytes: int = 0  # growth of the process during the call
    _thread: int = field(default_factory=threading.get_native_id)
    _clock: int = field(default_factory=lambda: time.pthread_getcpuclockid(threading.get_ident()))
    _began: float = field(default_factory=time.thread_time)
    _slept: float = 0.0

    def spent_seconds(self, since_last: float) -> float:
        """Return the time that counts by rule 6. Call it once per sample."""
        if _state_of(self._thread) == "S":
            self._slept += since_last
        return time.clock_gettime(self._clock) - self._began + self._slept


def allowance(memory_bytes: int) -> int:
    """Return how much a process may grow with a normal call whose DuckDB has this limit."""
    return memory_bytes + memory_bytes // 8 + (64 << 20)


@contextlib.contextmanager
def memory_bound(limit_bytes: int | None, *, tasks: bool = False) -> Iterator[None]:
    """Set how much the process may hold while calls run (rule 1); None: no change.

    `tasks`: the calls are tasks of many clients, and each may grow by half of the bound.
    """
    before = _WATCH.process_bytes, _WATCH.growth_bytes
    if limit_bytes is not None:
        _WATCH.process_bytes = limit_bytes + max(0, _memory()[0] - OWN_BYTES)
        _WATCH.growth_bytes = limit_bytes // 2 if tasks else 0
    try:
        yield
    finally:
        _WATCH.process_bytes, _WATCH.growth_bytes = before


@contextlib.contextmanager
def contained_task(interrupt: Callable[[], None]) -> Iterator[None]:
    """Apply the bound to a whole task, not only to its SQL: reading a batch may take as much.

    `interrupt` must end the task's SQL, from another thread.
    """
    if not _WATCH.growth_bytes:
        yield
        return
    with contained(interrupt, 0, math.inf):
        yield


def is_of_memory(error: BaseException) -> bool:
    """Return whether an error was caused by refused memory."""
    behind = error.__cause__ or error.__context__
    refused = isinstance(error, MemoryError | duckdb.OutOfMemoryException | MemoryExceededError)
    return refused or (behind is not None and is_of_memory(behind))


def held_bytes() -> int:
    """Return the private resident memory of this process."""
    return _memory()[0]


def give_back() -> None:
    """Ask the allocators to return unused memory to the system."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def available_bytes() -> int:
    """Return nine tenths of the memory that this process could still get: the default bound."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    return (free + min(_memory()[0], OWN_BYTES)) * 9 // 10


@contextlib.contextmanager
def contained(
    interrupt: Callable[[], None], memory_bytes: int, seconds: float
) -> Iterator[ContainedCall]:
    """Watch the work of this thread until it ends. `interrupt` must end it, from another thread."""
    call = ContainedCall(interrupt, memory_bytes, seconds)
    _WATCH.enter(call)
    try:
        yield call
    finally:
        _WATCH.leave(call)


class _Watch:
    """The watcher of all calls. There is one per process, because memory belongs to the process."""

    def __init__(self) -> None:
        self.process_bytes: int | None = None
        self.growth_bytes = 0  # what the first call may always add
        self._changed = threading.Condition()
        self._calls: list[ContainedCall] = []
        self._bound = 0
        self._before = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        self._thread: threading.Thread | None = None

    def enter(self, call: ContainedCall) -> None:
        with self._changed:
            if self._thread is None or not self._thread.is_alive():
                pa.allocate_buffer(1)  # Arrow's allocator maps 1 GiB for its first buffer
                self._thread = threading.Thread(target=self._watch, daemon=True, name="containment")
                self._thread.start()
            held, mapped = _memory()
            if not self._calls:
                self._before = resource.getrlimit(resource.RLIMIT_DATA)
                self._bound = held + self.growth_bytes if self.growth_bytes else 0
            self._calls.append(call)
            call.grown_bytes -= held
            needed = held + sum(allowance(one.memory_bytes) for one in self._calls)
            self._bound = max(self._bound, self.process_bytes or needed)
            self._refuse_beyond(held, mapped)
            self._changed.notify()

    def leave(self, call: ContainedCall) -> None:
        with self._changed:
            self._calls.remove(call)
            call.grown_bytes += _memory()[0]
            if not self._calls:
                resource.setrlimit(resource.RLIMIT_DATA, self._before)

    def _watch(self) -> None:
        last = time.monotonic()
        with self._changed:
            while True:
                self._changed.wait(_SAMPLE_SECONDS if self._calls else None)
                now = time.monotonic()
                if self._calls:
                    self._sample_anyhow(min(now - last, 2 * _SAMPLE_SECONDS))
                last = now

    def _sample_anyhow(self, seconds: float) -> None:
        """Sample; the next sample comes soon if this one fails, for want of memory for instance."""
        with contextlib.suppress(Exception):
            self._sample(seconds)

    def _sample(self, seconds: float) -> None:
        held, mapped = _memory()
        self._refuse_beyond(held, mapped)
        for call in self._calls:
            spent = call.spent_seconds(seconds)
            if held > self._bound:
                call.excess = Excess.MEMORY
            elif spent > call.seconds:
                call.excess = Excess.TIME
            if call.excess is not None:  # interrupt repeatedly: DuckDB may have just begun
                call.interrupt()

    def _refuse_beyond(self, held: int, mapped: int) -> None:
        soft, hard = self._before
        limit = max(mapped + self._bound + RESERVE_BYTES - held, 0)
        allowed = (one for one in (limit, soft, hard) if one != resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_DATA, (min(allowed), hard))


def _memory() -> tuple[int, int]:
    """Return the private resident memory, and the memory that RLIMIT_DATA counts, in bytes."""
    pages = Path("/proc/self/statm").read_bytes().split()
    return (int(pages[1]) - int(pages[2])) * _PAGE_BYTES, int(pages[5]) * _PAGE_BYTES


def _state_of(thread: int) -> str:
    """Return R for running or waiting for a processor, S for asleep, D for waiting for a disk."""
    stat = Path(f"/proc/self/task/{thread}/stat").read_text(encoding="utf-8", errors="replace")
    return stat.rpartition(")")[2].split()[0]


_WATCH = _Watch()
