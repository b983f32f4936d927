"""What every loop is given: the ports, and the few settings that bound it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from caudal.broker.port import Broker
from caudal.jobs.ended_jobs import Resting
from caudal.jobs.events import NoTaskEvents, TaskEvents
from caudal.jobs.interfaces import Clock, Compute
from caudal.jobs.owner_load import Loads
from caudal.jobs.runs import JobRuns
from caudal.store.port import Store


@dataclass(frozen=True)
class Bounds:
    """How much may wait, and how long to."""

    lane_limit: int = (
        10_000  # messages in a lane of map tasks, shared by owners (jobs/lane_shares.py)
    )
    nearly_empty: int = 64  # the reconciler publishes only into lanes with fewer messages
    patience_seconds: float = 10.0  # how long a task may be missing before it is published again
    patience_most_seconds: float = 300.0  # patience doubles with every round that changed nothing
    retry_seconds: float = 0.5  # a worker's pause after handing a task back
    idle_seconds: float = 0.05  # a worker's pause when there is nothing to take
    silence_seconds: tuple[float, float] = (1.0, 30 * 86_400.0)  # least and most that is granted
    sentiments: tuple[str, ...] | None = None  # models that a request may name; None: any
    jobs_ahead: int = 4  # of one owner; tasks of later ones wait in the slow lane
    folds_ahead: int = 512  # tasks of folds of one job; those of a larger one wait there, too
    folds_most: int = 10_000  # the same; a larger job is refused
    look_seconds: float = 1.0  # how often a worker looks whether its task is wanted
    mark_seconds: float = 3.0  # how often a worker marks the task that it computes
    stale_seconds: float = 16.0  # a mark that stays the same for so long is of a dead worker
    slice_seconds: float = 3.0  # a task that takes longer makes way for others (beat.py)
    quick: bool = False  # a worker that is kept free for short tasks
    keep_seconds: float | None = None  # how long results stay; None: as each request says
    rest_seconds: float = 300.0  # a job that has ended is looked at again after so long, at most
    batch_bytes: int = 1 << 30  # of the records of one batch; what claims to hold more is refused


@dataclass(frozen=True)
class Ports:
    """One process's ways to the world. `new_id` gives random names that nobody else has."""

    store: Store
    broker: Broker
    compute: Compute
    clock: Clock
    new_id: Callable[[], str]
    job_runs: JobRuns
    bounds: Bounds = Bounds()
    loads: Loads = field(default_factory=Loads, compare=False)
    events: TaskEvents = field(default_factory=NoTaskEvents, compare=False)
    resting: Resting = field(default_factory=Resting, compare=False)
