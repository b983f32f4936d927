"""The settings of one worker process, and values that are derived from them."""

from dataclasses import dataclass
from pathlib import Path

from caudal.duck.sandbox import SandboxLimits
from caudal.errors import UsageError
from caudal.formats.keys import Lane
from caudal.worker.suspects import SuspectLimits

# Memory of a worker outside of DuckDB: the interpreter with its libraries, and the inputs and the
# output of one task.
_PROCESS_BYTES = 400 << 20
_IDLE_ROOM_BYTES = 128 << 20  # for cached data of the last jobs
_LEAST_DATABASE_BYTES = 128 << 20
_LEAST_BYTES = _PROCESS_BYTES + _LEAST_DATABASE_BYTES


@dataclass(frozen=True)
class WorkerSettings:
    """The settings of one worker."""

    name: str
    lanes: tuple[Lane, ...] = tuple(Lane)
    quick: bool = False  # kept free for short tasks: slow tasks come last and give way
    memory_bytes: int = 700_000_000  # for the whole process; larger queries spill, then fail
    wait_seconds: float | None = None  # wait for store and broker at the start; None: for ever
    metrics_port: int | None = None  # port that serves the metrics
    late_seconds: float = 4.0  # from the request to stop until a computation is interrupted
    grace_seconds: float = 8.0  # until it is abandoned

    def __post_init__(self) -> None:
        if self.memory_bytes < _LEAST_BYTES:
            least = -(-_LEAST_BYTES // 1_000_000)
            raise UsageError(f"a worker needs at least {least} MB: raise --memory-limit")

    def turns(self) -> tuple[tuple[Lane, ...], tuple[Lane, ...]]:
        """Return the lanes to take from in turn, and those to use only if these are empty."""
        last = (Lane.SLOW,) if self.quick and Lane.SLOW in self.lanes else ()
        return tuple(lane for lane in self.lanes if lane not in last), last

    def limits(self, spill: Path) -> SandboxLimits:
        """Return the limits for SQL in this process."""
        return SandboxLimits(memory_bytes=self.memory_bytes - _PROCESS_BYTES, spill=spill)

    def idle_bytes(self, warm_bytes: int) -> int:
        """Return what the process may hold between two tasks: half of its memory, so that every
        task has the other half. It held `warm_bytes` before the first task.
        """
        return max(self.memory_bytes // 2, warm_bytes + _IDLE_ROOM_BYTES)

    def suspect_limits(self) -> SuspectLimits:
        """Return the limits for a suspect: all of the worker's memory, because it runs alone."""
        return SuspectLimits(memory_bytes=self.memory_bytes)
