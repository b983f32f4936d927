"""What one worker process is told at its entry, and what follows from it."""

from dataclasses import dataclass
from pathlib import Path

from caudal.duck.sandbox import SandboxLimits
from caudal.errors import UsageError
from caudal.formats.keys import Lane
from caudal.worker.suspects import SuspectLimits

LANES = {
    "map": (Lane.FIRST, Lane.EARLY, Lane.MIDDLE, Lane.LATE),  # merges travel there too
    "fold": (Lane.FOLD,),
    "finish": (Lane.FINISH,),
    "slow": (Lane.SLOW,),  # of any kind: they took long, or their owner has many jobs
}

# What a worker holds besides DuckDB's own memory: the interpreter with its libraries, and the
# inputs and the output of one task.
_PROCESS_BYTES = 400 << 20
_IDLE_ROOM_BYTES = 128 << 20  # for what a worker keeps of the jobs that it saw last
_LEAST_DATABASE_BYTES = 128 << 20
_LEAST_BYTES = _PROCESS_BYTES + _LEAST_DATABASE_BYTES


@dataclass(frozen=True)
class WorkerSettings:
    """One worker."""

    name: str
    lanes: tuple[Lane, ...] = tuple(Lane)
    quick: bool = False  # kept free for short tasks: slow ones come last, and make way
    memory_bytes: int = 700_000_000  # for the whole process; more spills to disk, then fails
    wait_seconds: float | None = None  # for store and broker at the start; None: for ever
    metrics_port: int | None = None  # where its figures can be read
    late_seconds: float = 4.0  # after a wish to stop, a computation is interrupted
    grace_seconds: float = 8.0  # and then abandoned

    def __post_init__(self) -> None:
        if self.memory_bytes < _LEAST_BYTES:
            least = -(-_LEAST_BYTES // 1_000_000)
            raise UsageError(f"a worker needs at least {least} MB: raise --memory-limit")

    def turns(self) -> tuple[tuple[Lane, ...], tuple[Lane, ...]]:
        """The lanes to take from in turn, and those only if there is nothing in them."""
        last = (Lane.SLOW,) if self.quick and Lane.SLOW in self.lanes else ()
        return tuple(lane for lane in self.lanes if lane not in last), last

    def limits(self, spill: Path) -> SandboxLimits:
        """For SQL in this process."""
        return SandboxLimits(memory_bytes=self.memory_bytes - _PROCESS_BYTES, spill=spill)

    def idle_bytes(self, warm_bytes: int) -> int:
        """What the process may hold between two tasks; it held `warm_bytes` before the first one.

        Half of its memory, so that every task finds the other half.
        """
        return max(self.memory_bytes // 2, warm_bytes + _IDLE_ROOM_BYTES)

    def suspect_limits(self) -> SuspectLimits:
        """For a suspect, which runs alone: all that the worker may have."""
        return SuspectLimits(memory_bytes=self.memory_bytes)


def lanes_of(tasks: str) -> tuple[Lane, ...]:
    """`map,fold,finish,slow` -> the lanes where such tasks wait."""
    kinds = [kind.strip() for kind in tasks.split(",")]
    unknown = [kind for kind in kinds if kind not in LANES]
    if unknown:
        raise UsageError(f"--tasks {tasks}: choose some of {','.join(LANES)}")
    return tuple(lane for kind in LANES if kind in kinds for lane in LANES[kind])
