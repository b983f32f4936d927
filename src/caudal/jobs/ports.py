"""The ports that every loop uses, and the settings that bound the loops."""

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
    """The limits: how much may wait, and for how long."""

    lane_limit: int = (
        10_000  # messages in a lane of map tasks, shared by owners (jobs/lane_shares.py)
    )
    nearly_empty: int = 64  # the reconciler publishes only to lanes with fewer messages
    patience_seconds: float = 10.0  # how long a task may be missing before it is published again
    patience_most_seconds: float = 300.0  # patience doubles up to this while nothing changes
    retry_seconds: float = 0.5  # a worker's pause after handing a task back
    idle_seconds: float = 0.05  # a worker's pause when there is nothing to take
    silence_seconds: tuple[float, float] = (1.0, 30 * 86_400.0)  # least and most that a client gets
    sentiments: tuple[str, ...] | None = None  # models that a request may name; None: any
    jobs_ahead: int = 4  # jobs of one owner; tasks of further jobs use the slow lane
    folds_ahead: int = 512  # fold tasks of one job; a job with more uses the slow lane, too
    folds_most: int = 10_000  # fold tasks of one job; a job with more is refused
    look_seconds: float = 1.0  # how often a worker checks that its task's job still runs
    mark_seconds: float = 3.0  # how often a worker marks the task that it computes
    stale_seconds: float = 16.0  # if a mark does not change for so long, its worker is dead
    slice_seconds: float = 3.0  # a task that takes longer gives way to others (beat.py)
    quick: bool = False  # a worker that is kept free for short tasks
    along_bytes: int = 0  # tasks of jobs with at most so much data are taken along (taken_along.py)
    along_seconds: float = 0.25  # a delivery that is held for longer takes no more tasks along
    keep_seconds: float | None = None  # how long results stay; None: as each request says
    rest_seconds: float = 300.0  # longest time until an ended job is looked at again
    unused_seconds: float = (
        7 * 86_400.0
    )  # shared map outputs that nobody used for so long are swept
    sweep_seconds: float = 3_600.0  # how often a janitor looks for them
    indexed: bool = True  # jobs are put into the index, for loops and lists (job_index.py)
    batch_bytes: int = 1 << 30  # records of one batch; a batch that declares more is refused


@dataclass(frozen=True)
class Ports:
    """The connections of one process to the outside. `new_id` returns unique random names."""

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
