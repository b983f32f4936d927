"""Notices that nothing of a job is computed, so that its client can say so."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from caudal.formats.replies import JobStatus
from caudal.jobs.upload import Listener

SECONDS = 15.0


class Noticing(Listener):
    """A listener for who shows nothing of a job: it tells only that the job stands still."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._standstill = Standstill()

    def saw(self, status: JobStatus) -> None:
        """Tell it if the job stands still."""
        if seconds := self._standstill.begins(status, monotonic()):
            self._tell(told(seconds))


@dataclass
class Standstill:
    """What a client saw of its job. A job stands still if there is something to compute, and no
    task of it ends for `SECONDS`. Long tasks look the same: after each time that it was told, twice
    that time must pass."""

    _done: object = None
    _since: float = 0.0
    _patience: float = SECONDS

    def begins(self, status: JobStatus, now: float) -> float:
        """Return for how long the job has stood still, if that is to be told now; else 0."""
        done = _tasks_done(status)
        if done != self._done or not _has_work(status):
            self._done, self._since = done, now
        seconds = now - self._since
        if seconds < self._patience:
            return 0.0
        self._patience = 2 * seconds
        return seconds


def told(seconds: float) -> str:
    """Return what a person is told of a job that stands still."""
    return (
        f"no task of this job has ended for {seconds:.0f} s: no worker runs, or its tasks are long "
        "or wait behind others (`caudal status` in the cluster's folder shows which); the job goes "
        "on by itself"
    )


def _tasks_done(status: JobStatus) -> object:
    mapped = {name: table.mapped for name, table in status.tables.items()}
    return mapped, status.folds, status.results


def _has_work(status: JobStatus) -> bool:
    """Return whether a task is due: a map, or one of a query whose tables are mapped."""
    if status.outcome is not None:
        return False
    mapped = {name for name, table in status.tables.items() if table.mapped == table.batches}
    return any(table.mapped < table.arrived for table in status.tables.values()) or any(
        mapped.issuperset(tables)
        for query, tables in status.reads.items()
        if query not in status.results
    )
