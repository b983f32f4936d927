"""The kinds of tasks that a worker may be told to execute, and their lanes."""

from caudal.errors import UsageError
from caudal.formats.keys import Lane

LANES = {
    "map": (Lane.FIRST, Lane.EARLY, Lane.MIDDLE, Lane.LATE),  # merges use these lanes, too
    "fold": (Lane.FOLD,),
    "finish": (Lane.FINISH,),
    "slow": (Lane.SLOW,),  # any kind: tasks that took long, or whose owner has many jobs
}


def lanes_of(tasks: str) -> tuple[Lane, ...]:
    """Return the lanes of a list of task kinds such as `map,fold,finish,slow`."""
    kinds = [kind.strip() for kind in tasks.split(",")]
    unknown = [kind for kind in kinds if kind not in LANES]
    if unknown:
        raise UsageError(f"--tasks {tasks}: choose some of {','.join(LANES)}")
    return tuple(lane for kind in LANES if kind in kinds for lane in LANES[kind])
