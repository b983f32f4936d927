"""One run of a job: the decoded content of job.json.

Rules
1. A run is over when its outcome exists, or when job.json is gone or names another run. A process
   may use an opened run too late. Its objects then belong to a run that no process reads.
2. The outcome is created once. A process that comes second uses the first outcome.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from caudal.errors import AlreadyExistsError, NotFoundError
from caudal.formats import outcomes
from caudal.formats.file_groups import FileGroup
from caudal.formats.job import Job
from caudal.formats.keys import REJECTS, Keys, Message, Task
from caudal.formats.loads import LOAD, UPKEEP
from caudal.formats.outcomes import Outcome, State
from caudal.jobs import objects
from caudal.jobs.interfaces import Clock, InputPart
from caudal.jobs.levels import PLAN_LEVEL, require_plan
from caudal.jobs.plan import JobPlan, from_json
from caudal.jobs.readiness import Shape, Step
from caudal.sql.planner import Scan
from caudal.store.port import Store


@dataclass(frozen=True)
class JobRun:
    """A job, and everything that is derived from it."""

    job: Job
    keys: Keys
    split: JobPlan
    shape: Shape
    hints: dict[str, Sequence[InputPart]] = field(default_factory=dict, compare=False, repr=False)
    """Streams of complete stages, by stage, to make hints from. Empty: not worth a hint."""
    files: dict[str, tuple[FileGroup, ...]] = field(default_factory=dict, compare=False, repr=False)
    """Files of a dataset, by table (shared_maps.py)."""
    parts: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Digests of the plan's parts, by table (shared_maps.py)."""
    verdicts: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Errors of finished queries; empty for a query that did not fail (failed_queries.py)."""

    @classmethod
    def of(cls, job: Job, level: int = PLAN_LEVEL) -> "JobRun":
        """Read the plan of a job. Raise OtherVersionError if its level is above this one."""
        require_plan(job.id, job.versions, level)
        split = from_json(job.plan)
        return cls(
            job, Keys(job.id, job.run, job.request.options.group), split, shape_of(job, split)
        )

    def hint_stages(self, table: str) -> tuple[str, ...]:
        """Return the scans of other tables from which hints for this table's scans are made."""
        tables = {scan.name: scan.table for scan in self.split.plan.scans}
        return tuple(
            dict.fromkeys(
                stage
                for hint in self.split.plan.hints
                if tables[hint.scan] == table
                for stage, _ in hint.sources
                if tables.get(stage, table) != table
            )
        )

    def message(self, task: Task) -> Message:
        return Message(self.job.id, self.job.run, task, self.keys.group, int(self.job.behind))


def shape_of(job: Job, split: JobPlan) -> Shape:
    """Return which steps of a plan read which tables and folds."""
    scanned = {scan.name: scan.table for scan in split.plan.scans}
    options = job.request.options

    def step(inputs: tuple[str, ...], partitions: int = 1) -> Step:
        tables = frozenset(scanned[one] for one in inputs if one in scanned)
        return Step(tables, frozenset(one for one in inputs if one not in scanned), partitions)

    folds = {
        fold.name: step(fold.inputs, options.partitions if fold.partitions == "all" else 1)
        for fold in split.plan.folds
    }
    finishes = {last.query: step(tuple(last.inputs.values())) for last in split.plan.finishes}
    return Shape.of(job.tables, folds, finishes, options.group, _commits(job))


def _commits(job: Job) -> list[str]:
    if job.request.load:
        return [LOAD]
    return [UPKEEP] if job.request.upkeep else []


def stage_of(job_run: JobRun, name: str) -> Scan | None:
    """Return the scan of that name; None if it is a fold."""
    return next((scan for scan in job_run.split.plan.scans if scan.name == name), None)


class JobRuns:
    """The opener of jobs. It caches decoded jobs as long as job.json has the same bytes.

    Thread-safe. The lock guards the cache and is not held while the store is read.
    """

    _KEPT = 64

    def __init__(self, store: Store, level: int = PLAN_LEVEL) -> None:
        self._store = store
        self._level = level
        self._known: dict[str, tuple[bytes, JobRun]] = {}
        self._lock = Lock()

    def open(self, job: str) -> JobRun | None:
        """Return the current run of a job; None if there is none."""
        try:
            data = objects.job_bytes(self._store, job)
        except NotFoundError:
            with self._lock:
                self._known.pop(job, None)
            return None
        with self._lock:
            known = self._known.get(job)
        if known is None or known[0] != data:
            known = data, JobRun.of(objects.job_of(data, job), self._level)
            with self._lock:
                if len(self._known) >= self._KEPT:
                    self._known.pop(next(iter(self._known)))
                self._known[job] = known
        return known[1]

    def forget(self) -> None:
        """Clear the cache."""
        with self._lock:
            self._known.clear()

    def running(self, message: Message) -> JobRun | None:
        """Return the run that a message belongs to; None if it is over, even if its outcome is
        unreadable."""
        job_run = self.open(message.job)
        if job_run is None or job_run.job.run != message.run:
            return None
        return None if objects.exists(self._store, job_run.keys.outcome) else job_run


def read_outcome(store: Store, keys: Keys) -> Outcome | None:
    try:
        return objects.outcome(store, keys)
    except NotFoundError:
        return None


def end_run(
    store: Store,
    clock: Clock,
    keys: Keys,
    state: State,
    reason: str = "",
    failed: Mapping[str, str] | None = None,
) -> Outcome:
    """Create the outcome. Return the one that is stored, which may be an earlier one."""
    wanted = Outcome(state, reason, clock.now(), dict(failed or {}))
    try:
        store.create(keys.outcome, outcomes.encode_outcome(wanted))
    except AlreadyExistsError:
        return read_outcome(store, keys) or wanted
    return wanted


def query_names(job_run: JobRun) -> list[str]:
    """Return the queries of a job, without commits and the rejects report."""
    others = {REJECTS, *job_run.shape.commits}
    return [name for name in job_run.shape.finishes if name not in others]
