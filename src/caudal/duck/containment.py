"""What a user's task may cost the process that runs it: memory and time, whatever DuckDB counts.

DuckDB's own limit covers its tables and hash tables. The strings and lists of an expression and
the Arrow rows of a result are outside of it: under a limit of 300 MiB, `repeat('x', 2000000000)`
took 4 GiB.

Rules
1. Held memory is private and resident. While calls run it is sampled, and if it exceeds the bound,
   all that run are interrupted. `memory_bound` sets the bound for the whole process, not counting
   what a program held that calls Caudal (more than OWN_BYTES, when it began); without it a call may
   add its own limit, and a little more (`allowance`), to what the process held when it
   began: DuckDB keeps to its limit by spilling, and what it does not count comes on top. Memory
   cannot be told apart by thread: who runs beside a bomb is interrupted with it.
   A worker runs the tasks of many clients, one after the other. There a whole task is one call
   (`contained_task`), and it may grow by half of the bound whatever the process held when it began:
   what an earlier task left behind is nobody else's fault.
2. One step of an expression cannot be interrupted. So the kernel is told (RLIMIT_DATA) to refuse
   what would exceed the bound; DuckDB, Arrow and numpy turn a refusal into an error and live on.
   What allocators have mapped and do not hold counts for nothing: Arrow was seen with 5.1 GiB
   mapped and 0.6 GiB in use. So the limit is renewed with every sample, from what is mapped then.
3. RESERVE_BYTES lie between interruption and refusal. Code that is refused its last few bytes may
   crash (starting a thread does), so refusals are for the large; what grows slowly is interrupted.
4. When no call runs there is no limit: what else the process does is not the user's doing.
5. Time is what the call's thread ran or slept of its own will (`sleep_ms`). Waiting for a processor
   or a disk costs nothing: a loaded machine condemns nobody.
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
OWN_BYTES = 256 << 20  # what a process of Caudal's own may hold before it begins

_SAMPLE_SECONDS = 0.02
_PAGE_BYTES = resource.getpagesize()


class Excess(Enum):
    """What a call used too much of."""

    MEMORY = "memory"
    TIME = "time"


@dataclass
class ContainedCall:
    """One call under way, on the thread that made it."""

    interrupt: Callable[[], None]
    memory_bytes: int
    seconds: float
    excess: Excess | None = None
    grown_bytes: int = 0  # by how much the process grew in this time
    _thread: int = field(default_factory=threading.get_native_id)
    _clock: int = field(default_factory=lambda: time.pthread_getcpuclockid(threading.get_ident()))
    _began: float = field(default_factory=time.thread_time)
    _slept: float = 0.0

    def spent_seconds(self, since_last: float) -> float:
        """Rule 5; to be asked once per sample."""
        if _state_of(self._thread) == "S":
            self._slept += since_last
        return time.clock_gettime(self._clock) - self._began + self._slept


def allowance(memory_bytes: int) -> int:
    """How far a process grows with a healthy call whose DuckDB has this limit."""
    return memory_bytes + memory_bytes // 8 + (64 << 20)


@contextlib.contextmanager
def memory_bound(limit_bytes: int | None, *, tasks: bool = False) -> Iterator[None]:
    """From here on the process may hold this much while calls run (rule 1); None: as before.

    `tasks`: the calls are tasks of many clients, of which each may grow by half of it.
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
    """Hold all that a task does to the bound of a process that runs tasks, and not only its SQL:
    reading a batch may take as much. `interrupt` must end the task's SQL, from another thread."""
    if not _WATCH.growth_bytes:
        yield
        return
    with contained(interrupt, 0, math.inf):
        yield


def is_of_memory(error: BaseException) -> bool:
    """Whether a refusal of memory lies behind an error."""
    behind = error.__cause__ or error.__context__
    refused = isinstance(error, MemoryError | duckdb.OutOfMemoryException | MemoryExceededError)
    return refused or (behind is not None and is_of_memory(behind))


def held_bytes() -> int:
    """What this process holds now."""
    return _memory()[0]


def give_back() -> None:
    """Return memory that allocators keep and nobody uses to the system, as far as they do."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError):  # of glibc only
        ctypes.CDLL(None).malloc_trim(0)


def available_bytes() -> int:
    """Nine tenths of what this process could still get: a bound for want of another."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    return (free + min(_memory()[0], OWN_BYTES)) * 9 // 10


@contextlib.contextmanager
def contained(
    interrupt: Callable[[], None], memory_bytes: int, seconds: float
) -> Iterator[ContainedCall]:
    """Watch this thread's work until it is done; `interrupt` must end it, from another thread."""
    call = ContainedCall(interrupt, memory_bytes, seconds)
    _WATCH.enter(call)
    try:
        yield call
    finally:
        _WATCH.leave(call)


class _Watch:
    """The calls of this process. Memory and its limit belong to the process, and so does this."""

    def __init__(self) -> None:
        self.process_bytes: int | None = None
        self.growth_bytes = 0  # that a first call may add in any case
        self._changed = threading.Condition()
        self._calls: list[ContainedCall] = []
        self._bound = 0
        self._before = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        self._thread: threading.Thread | None = None

    def enter(self, call: ContainedCall) -> None:
        with self._changed:
            if self._thread is None:
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
                    self._sample(min(now - last, 2 * _SAMPLE_SECONDS))
                last = now

    def _sample(self, seconds: float) -> None:
        held, mapped = _memory()
        self._refuse_beyond(held, mapped)
        for call in self._calls:
            spent = call.spent_seconds(seconds)
            if held > self._bound:
                call.excess = Excess.MEMORY
            elif spent > call.seconds:
                call.excess = Excess.TIME
            if call.excess is not None:  # again and again: DuckDB may just have begun
                call.interrupt()

    def _refuse_beyond(self, held: int, mapped: int) -> None:
        soft, hard = self._before
        limit = max(mapped + self._bound + RESERVE_BYTES - held, 0)
        allowed = (one for one in (limit, soft, hard) if one != resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_DATA, (min(allowed), hard))


def _memory() -> tuple[int, int]:
    """What this process holds (private and resident), and what RLIMIT_DATA counts, in bytes."""
    pages = Path("/proc/self/statm").read_bytes().split()
    return (int(pages[1]) - int(pages[2])) * _PAGE_BYTES, int(pages[5]) * _PAGE_BYTES


def _state_of(thread: int) -> str:
    """R for running or waiting for a processor, S for asleep, D for waiting for a disk."""
    stat = Path(f"/proc/self/task/{thread}/stat").read_text(encoding="utf-8", errors="replace")
    return stat.rpartition(")")[2].split()[0]


_WATCH = _Watch()
