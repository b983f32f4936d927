"""The janitor: deletes objects that no process will read again. Several janitors do no harm.

Rules
1. List first, then read job.json. Objects of a run exist only after job.json named it, and
   job.json never names a run twice. So a run that was listed and is not named now is garbage.
2. When a run has its outcome, its data is deleted: all but results, the outcome, the facts that
   the page shows of a job that is done or failed, and the ends of tables, with which a late client
   can check its data. Objects that a late worker still adds are deleted in a later round. What a
   power cut brings back stays as long as what is added later than that (rules 4 and 5).
3. When the results expire, delete first the results, then job.json, then the outcome. A job with
   job.json but without outcome would seem to run. Results expire when this clock and the store's
   clock, if it has one, both say so. So a clock that is ahead deletes nothing early. They are kept
   from the end of the job by the clock of the process that ended it, or by the time at which the
   store got the outcome if that is later. So a clock that is behind deletes nothing early either.
4. An ended job with nothing to delete rests a while (ended_jobs.py). After that, the index has it
   among the ended jobs, and it is not looked at before its results expire (job_index.py): what a
   process adds later than that stays until then. A job that is not known to have ended is looked
   at in every round.
5. At its start and then every hour, a janitor looks for jobs that are not in the index.
6. Now and then, map outputs of datasets that nobody used for long are deleted (sweep.py).
7. In a directory, empty folders and temporary files of dead writers are deleted. The store itself
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
from caudal.jobs.job_index import (
    Mark,
    all_ended_marks,
    ended_mark,
    ended_marks,
    enrol,
    move,
    owner_key,
    remove,
    running_marks,
    stored_jobs,
)
from caudal.jobs.ports import Ports
from caudal.jobs.runs import JobRun, read_outcome
from caudal.jobs.sweep import sweep_shared
from caudal.process.logs import fields
from caudal.store.port import Store, folder_names, key_in, pages

_log = logging.getLogger(__name__)

_LOOP = "janitor"
_BEHIND_SECONDS = 60  # less is the time that the store took
_SWEPT_SECONDS = 3_600.0  # younger temporary files are left alone


class Janitor:
    """The cleaner of the store."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._swept = ports.clock.elapsed()  # when shared outputs were looked at
        self._looked: float | None = None  # when jobs outside of the index were looked for

    def round(self) -> None:
        """Look at every job that may need it. If the store fails, it waits for the next round."""
        store, now = self._ports.store, self._ports.clock.elapsed()
        marks = [*running_marks(store), *ended_marks(store, self._ports.clock.now())]
        for mark in self._ports.resting.awake(_LOOP, marks, now):
            with contextlib.suppress(StoreError, FormatError):
                self._clean(mark)
        if self._looked is None or now - self._looked >= self._ports.bounds.sweep_seconds:
            self._look_for_others()
            self._looked = now
        self._sweep_shared()
        self._ports.store.sweep(_SWEPT_SECONDS)

    def _sweep_shared(self) -> None:
        now, pause = self._ports.clock.elapsed(), self._ports.bounds.sweep_seconds
        if now - self._swept >= pause:
            self._swept = now
            with contextlib.suppress(StoreError):
                sweep_shared(self._ports)

    def _look_for_others(self) -> None:
        """Look after jobs without a mark. At the start, also look at every ended job if a setting
        says how long they stay: it may have said something else before."""
        store, is_first = self._ports.store, self._looked is None
        jobs, ended = set(stored_jobs(store)), list(all_ended_marks(store))
        known = {mark.job for mark in (*running_marks(store), *ended)}
        for job_id in sorted(jobs - known):
            with contextlib.suppress(StoreError, FormatError):
                job_run, _ = self._clean_runs(job_id)
                if job_run is not None:
                    enrol(store, job_run.job)
        for mark in ended if is_first and self._ports.bounds.keep_seconds is not None else ():
            with contextlib.suppress(StoreError, FormatError):
                self._clean(mark)

    def _clean(self, mark: Mark) -> None:
        job_run, runs = self._clean_runs(mark.job)
        if job_run is not None and job_run.job.run == mark.run:
            outcome = read_outcome(self._ports.store, job_run.keys)
            if outcome is not None:
                self._clean_ended(job_run, outcome, mark)
        elif mark.run not in runs:
            remove(self._ports.store, mark)

    def _clean_runs(self, job_id: str) -> tuple[JobRun | None, list[str]]:
        """Delete runs that are not named; return the named one, and all that were there."""
        runs = list(run_names(self._ports.store, job_id))
        job_run = self._ports.job_runs.open(job_id)
        named = job_run.job.run if job_run else None
        for run in runs:
            if run != named:
                self._delete(f"jobs/{job_id}/{run}/")
        if job_run is None and not runs:
            self._ports.store.delete(key_in(f"jobs/{job_id}/"))
        return job_run, runs

    def _clean_ended(self, job_run: JobRun, outcome: Outcome, mark: Mark) -> None:
        keys = job_run.keys
        but: tuple[str, ...] = (keys.results(), keys.outcome)
        if outcome.state in ("done", "failed"):
            but = (*but, keys.facts())
        if outcome.state == "done":
            but = (*but, keys.ends())
        deleted = self._delete(f"{keys.root}/", but=but)
        now, keep = self._ports.clock.now(), self._keep(job_run)
        ended = self._ended(job_run, outcome, keep)
        ends = ended + keep
        left = self._left(job_run, ends)
        if left <= 0:
            delete_ended(self._ports, job_run)
        elif not deleted:
            later = ended_mark(job_run.job, ends)
            is_settled = now - ended >= self._ports.bounds.rest_seconds / 2
            if is_settled and later != mark:
                move(self._ports.store, mark, job_run.job, ends)
            else:
                self._rest(mark, left)

    def _keep(self, job_run: JobRun) -> float:
        """Return how long the results are kept after the end of the job."""
        kept = self._ports.bounds.keep_seconds
        return job_run.job.request.options.keep_seconds if kept is None else kept

    def _ended(self, job_run: JobRun, outcome: Outcome, keep: float) -> float:
        """Return when the job ended. The store is asked only if the results seem to expire."""
        if outcome.at + keep > self._ports.clock.now():
            return outcome.at
        key = job_run.keys.outcome
        listed = self._ports.store.list(key).entries
        stored = max((one.modified for one in listed if one.key == key), default=0.0)
        behind = round(stored - outcome.at)
        if behind >= _BEHIND_SECONDS:
            _log.warning(
                "the clock of the process that ended a job was behind the store's",
                extra=fields(job=job_run.job.id, by=behind),
            )
        return max(outcome.at, stored)

    def _left(self, job_run: JobRun, ends: float) -> float:
        """Return the seconds until the results expire."""
        store, left = self._ports.store, ends - self._ports.clock.now()
        if left > 0 or (dated := store.time()) is None or (truly := ends - dated) <= 0:
            return left
        ahead = round(truly - left)
        _log.warning(
            "this clock is ahead of the store's", extra=fields(job=job_run.job.id, by=ahead)
        )
        return truly

    def _rest(self, mark: Mark, left: float) -> None:
        """Let an ended job rest (rule 4)."""
        seconds = min(left, spread(mark, self._ports.bounds.rest_seconds))
        self._ports.resting.rest(_LOOP, mark, self._ports.clock.elapsed() + seconds)

    def _delete(self, prefix: str, but: tuple[str, ...] = ()) -> int:
        return _delete_below(self._ports.store, prefix, but)


def delete_ended(ports: Ports, job_run: JobRun) -> None:
    """Delete all that is left of a run that has its outcome, in the order of rule 3."""
    keys = job_run.keys
    _delete_below(ports.store, f"{keys.root}/", but=(keys.outcome,))
    again = ports.job_runs.open(job_run.job.id)
    if again is not None and again.job.run == job_run.job.run:
        ports.store.delete(owner_key(job_run.job), lasting=False)
        ports.store.delete(job_key(job_run.job.id))
    ports.store.delete(keys.outcome)


def _delete_below(store: Store, prefix: str, but: tuple[str, ...] = ()) -> int:
    """Delete all keys below a prefix except those in `but`; return how many were deleted."""
    deleted = 0
    for page in list(pages(store, prefix)):
        for key in (*(one.key for one in page.entries), *map(key_in, page.folders)):
            if not key.startswith(but):
                store.delete(key, lasting=False)
                deleted += 1
    return deleted


def run_names(store: Store, job_id: str) -> Iterator[str]:
    """Return the runs of a job that have any object."""
    return folder_names(store, f"jobs/{job_id}/")
