"""The janitor: deletes objects that no process will read again. Several janitors do no harm.

Rules
1. List first, then read job.json. Objects of a run exist only after job.json named it, and
   job.json never names a run twice. So a run that was listed and is not named now is garbage.
2. When a run has its outcome, its data is deleted: all but results, the outcome, the facts that
   the page shows of a job that is done or failed, and the ends of tables, with which a late client
   can check its data. Objects that a late worker still adds are deleted in a later round.
3. When the results expire, delete first the results, then job.json, then the outcome. A job with
   job.json but without outcome would seem to run. Results expire when this clock and the store's
   clock, if it has one, both say so. So a clock that is ahead deletes nothing early.
4. An ended job with nothing to delete rests until its results expire, but at most for a while
   (ended_jobs.py). A job that is not known to have ended is looked at in every round.
5. Now and then, map outputs of datasets that nobody used for long are deleted (sweep.py).
6. In a directory, empty folders and temporary files of dead writers are deleted. The store itself
   knows which files those are.

Only the delete of job.json can do harm when it is late, because a new run under the same id uses
the same key. So job.json is read again just before. If a janitor is suspended exactly between that
read and the delete, and resumes after the id got a new run, it deletes the job.json of the new
run. That client is told that there is no such job, and begins again. No answer is wrong.
"""

import contextlib
import logging
from collections.abc import Iterator

from caudal.errors import FormatError, StoreError
from caudal.formats.keys import job_key
from caudal.formats.outcomes import Outcome
from caudal.jobs.ended_jobs import spread
from caudal.jobs.ports import Ports
from caudal.jobs.reconciler import job_ids
from caudal.jobs.runs import JobRun, read_outcome
from caudal.jobs.sweep import sweep_shared
from caudal.process.logs import fields
from caudal.store.port import Store, folder_names, key_in, pages

_log = logging.getLogger(__name__)

_LOOP = "janitor"
_SWEPT_SECONDS = 3_600.0  # younger temporary files are left alone


class Janitor:
    """The cleaner of the store."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._swept = ports.clock.elapsed()  # when shared outputs were looked at

    def round(self) -> None:
        """Look at every job once. A job whose store calls fail waits for the next round."""
        now, jobs = self._ports.clock.elapsed(), list(job_ids(self._ports.store))
        for job_id in self._ports.resting.awake(_LOOP, jobs, now):
            try:
                self._clean(job_id)
            except (StoreError, FormatError):
                continue
        self._sweep_shared()
        self._ports.store.sweep(_SWEPT_SECONDS)

    def _sweep_shared(self) -> None:
        now, pause = self._ports.clock.elapsed(), self._ports.bounds.sweep_seconds
        if now - self._swept >= pause:
            self._swept = now
            with contextlib.suppress(StoreError):
                sweep_shared(self._ports)

    def _clean(self, job_id: str) -> None:
        runs = list(run_names(self._ports.store, job_id))
        job_run = self._ports.job_runs.open(job_id)
        named = job_run.job.run if job_run else None
        for run in runs:
            if run != named:
                self._delete(f"jobs/{job_id}/{run}/")
        if job_run is not None:
            outcome = read_outcome(self._ports.store, job_run.keys)
            if outcome is not None:
                self._clean_ended(job_run, outcome)
        elif not runs:
            self._ports.store.delete(key_in(f"jobs/{job_id}/"))

    def _clean_ended(self, job_run: JobRun, outcome: Outcome) -> None:
        keys = job_run.keys
        but: tuple[str, ...] = (keys.results(), keys.outcome)
        if outcome.state in ("done", "failed"):
            but = (*but, keys.facts())
        if outcome.state == "done":
            but = (*but, keys.ends())
        deleted = self._delete(f"{keys.root}/", but=but)
        left = self._left(job_run, outcome)
        if left <= 0:
            delete_ended(self._ports, job_run)
        elif not deleted:
            self._rest(job_run.job.id, left)

    def _left(self, job_run: JobRun, outcome: Outcome) -> float:
        """Return the seconds until the results expire."""
        store, kept = self._ports.store, self._ports.bounds.keep_seconds
        ends = outcome.at + (job_run.job.request.options.keep_seconds if kept is None else kept)
        left = ends - self._ports.clock.now()
        if left > 0 or (dated := store.time()) is None or (truly := ends - dated) <= 0:
            return left
        ahead = round(truly - left)
        _log.warning(
            "this clock is ahead of the store's", extra=fields(job=job_run.job.id, by=ahead)
        )
        return truly

    def _rest(self, job_id: str, left: float) -> None:
        """Let an ended job rest (rule 4)."""
        seconds = min(left, spread(job_id, self._ports.bounds.rest_seconds))
        self._ports.resting.rest(_LOOP, job_id, self._ports.clock.elapsed() + seconds)

    def _delete(self, prefix: str, but: tuple[str, ...] = ()) -> int:
        return _delete_below(self._ports.store, prefix, but)


def delete_ended(ports: Ports, job_run: JobRun) -> None:
    """Delete all that is left of a run that has its outcome, in the order of rule 3."""
    keys = job_run.keys
    _delete_below(ports.store, f"{keys.root}/", but=(keys.outcome,))
    again = ports.job_runs.open(job_run.job.id)
    if again is not None and again.job.run == job_run.job.run:
        ports.store.delete(job_key(job_run.job.id))
    ports.store.delete(keys.outcome)


def _delete_below(store: Store, prefix: str, but: tuple[str, ...] = ()) -> int:
    """Delete all keys below a prefix except those in `but`; return how many were deleted."""
    deleted = 0
    for page in list(pages(store, prefix)):
        for key in (*(one.key for one in page.entries), *map(key_in, page.folders)):
            if not key.startswith(but):
                store.delete(key)
                deleted += 1
    return deleted


def run_names(store: Store, job_id: str) -> Iterator[str]:
    """Return the runs of a job that have any object."""
    return folder_names(store, f"jobs/{job_id}/")
