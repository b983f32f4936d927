"""One life of a job, opened: what stands in job.json, ready to be used.

Rules
1. A life is over when its outcome exists, or when job.json is gone or names another run. Whoever
   holds an opened life may be late: everything it creates then lies under a run that nobody reads.
2. The outcome is created once. Whoever comes second takes the first one's word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from caudal.errors import AlreadyExistsError, NotFoundError
from caudal.formats import outcomes
from caudal.formats.job import Job
from caudal.formats.keys import REJECTS, Keys, Message, Task
from caudal.formats.outcomes import Outcome, State
from caudal.jobs import objects
from caudal.jobs.interfaces import Clock, InputPart
from caudal.jobs.plan import JobPlan, from_json
from caudal.jobs.readiness import Shape, Step
from caudal.sql.planner import Scan
from caudal.store.port import Store


@dataclass(frozen=True)
class JobRun:
    """A job with all that follows from it."""

    job: Job
    keys: Keys
    split: JobPlan
    shape: Shape
    hints: dict[str, Sequence[InputPart]] = field(default_factory=dict, compare=False, repr=False)
    """Streams of complete stages, by stage: what hints are made of. Empty: not worth a hint."""
    verdicts: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Of finished queries: why they failed, empty if they did not (failed_queries.py)."""

    @classmethod
    def of(cls, job: Job) -> "JobRun":
        split = from_json(job.plan)
        return cls(
            job, Keys(job.id, job.run, job.request.options.group), split, shape_of(job, split)
        )

    def hint_stages(self, table: str) -> tuple[str, ...]:
        """The scans of other tables that the hints of this table's scans are made of."""
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
    """Which steps of a plan read which tables and folds."""
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
    return Shape.of(job.tables, folds, finishes, options.group)


def stage_of(job_run: JobRun, name: str) -> Scan | None:
    """The scan of that name; None if it is a fold."""
    return next((scan for scan in job_run.split.plan.scans if scan.name == name), None)


class JobRuns:
    """Opens jobs. What was decoded once is kept, as long as the same bytes are read again.

    Several threads may ask at once: the lock guards what is kept, never a read of the store.
    """

    _KEPT = 64

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[bytes, JobRun]] = {}
        self._lock = Lock()

    def open(self, job: str) -> JobRun | None:
        """The present life of a job; None if there is none."""
        try:
            data = objects.job_bytes(self._store, job)
        except NotFoundError:
            with self._lock:
                self._known.pop(job, None)
            return None
        with self._lock:
            known = self._known.get(job)
        if known is None or known[0] != data:
            known = data, JobRun.of(objects.job_of(data, job))
            with self._lock:
                if len(self._known) >= self._KEPT:
                    self._known.pop(next(iter(self._known)))
                self._known[job] = known
        return known[1]

    def forget(self) -> None:
        """Let go of what can be read again."""
        with self._lock:
            self._known.clear()

    def running(self, message: Message) -> JobRun | None:
        """The life that a message belongs to; None if it is over, however that reads."""
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
    """Create the outcome, and say which one it became."""
    wanted = Outcome(state, reason, clock.now(), dict(failed or {}))
    try:
        store.create(keys.outcome, outcomes.encode_outcome(wanted))
    except AlreadyExistsError:
        return read_outcome(store, keys) or wanted
    return wanted


def query_names(job_run: JobRun) -> list[str]:
    """The queries of a job, without the rejects report."""
    return [name for name in job_run.shape.finishes if name != REJECTS]
