"""Notices that nothing of a job is computed, so that its client can say so."""

from dataclasses import dataclass

from caudal.formats.replies import JobStatus

SECONDS = 15.0


@dataclass
class Standstill:
    """What a client saw of its job. A job stands still if there is something to compute, and no
    task of it ends for `SECONDS`."""

    _done: object = None
    _since: float = 0.0
    _told: bool = False

    def begins(self, status: JobStatus, now: float) -> bool:
        """Return whether the job stands still, the first time that it does since the last task."""
        done = _tasks_done(status)
        if done != self._done or not _has_work(status):
            self._done, self._since, self._told = done, now, False
        if self._told or now - self._since < SECONDS:
            return False
        self._told = True
        return True


def _tasks_done(status: JobStatus) -> object:
    mapped = {name: table.mapped for name, table in status.tables.items()}
    return mapped, status.folds, status.results


def _has_work(status: JobStatus) -> bool:
    """Return whether a task of this job is due: a batch to map, or a table that is complete."""
    tables = status.tables.values()
    return status.outcome is None and any(
        table.mapped < table.arrived or table.mapped == table.batches for table in tables
    )
