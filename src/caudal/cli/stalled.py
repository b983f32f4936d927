"""Notices that nothing of a job is computed, so that its client can say so."""

from dataclasses import dataclass

from caudal.formats.replies import JobStatus

SECONDS = 15.0


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
