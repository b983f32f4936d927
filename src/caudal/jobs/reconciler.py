"""The reconciler: publishes again the tasks that the broker lost. It runs in every gateway.

A round looks at every running job and computes its missing tasks from the store. The comparison
with the round before decides whether they are published again (jobs/watch.py). A task that a
worker computes right now is not missing. Several reconcilers do no harm: a task that is published
twice is done once. Only the running jobs of the index are looked at (job_index.py); those that
ended a short time ago are skipped most of the time (ended_jobs.py).

A question to a dataset that needs workers of another level (levels.py) is not published for ever:
perhaps no such worker is left. A gateway that is not of that level either ends it when it saw for a
minute that no task of it is computed. Its client asks again, which plans it anew.
"""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from caudal.broker.port import BrokerError
from caudal.errors import AlreadyExistsError, FormatError, StoreError
from caudal.formats.keys import Keys, Message, Task
from caudal.formats.outcomes import PLANNED_ELSEWHERE
from caudal.jobs.ended_jobs import spread
from caudal.jobs.facts import OneLook, StoreFacts
from caudal.jobs.failed_queries import end_done
from caudal.jobs.interfaces import is_suspect
from caudal.jobs.job_index import running_marks
from caudal.jobs.lane_shares import is_worth_counting
from caudal.jobs.levels import misfit
from caudal.jobs.owner_load import Waiting
from caudal.jobs.ports import Ports
from caudal.jobs.readiness import all_finished
from caudal.jobs.reconcile import ROUND, awaits_client, missing_tasks
from caudal.jobs.runs import JobRun, end_run, read_outcome
from caudal.jobs.shared_maps import dataset_of, facts_of
from caudal.jobs.watch import (
    Beating,
    Patience,
    Watch,
    beating,
    is_silent,
    is_stuck,
    not_computed,
    observe,
    published,
    stands_for,
    that_fit,
)

_LOOP = "reconciler"
_MISFIT_SECONDS = 60.0  # how long a question waits for a worker of its level


class Reconciler:
    """The watcher of all jobs. Its memory may be lost at any time."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._watches: dict[tuple[str, str], Watch] = {}
        self._damaged: dict[tuple[str, str], int] = {}  # rounds that met a damaged object
        self._beats: dict[tuple[str, str], dict[Task, Beating]] = {}
        self._owners: set[str] = set()  # of the jobs that ran in the last round
        self._crowded: set[tuple[str, str]] = set()  # jobs with the mark "crowded"
        self._waiting: Waiting = Counter()  # batches, counted in this round if many wait
        self._looks_for = ROUND  # most missing tasks per job, in this round

    def round(self) -> None:
        """Look at every job once. If the store or broker fails, a job waits for the next round."""
        self._ports.loads.begin()
        seen, owners = set(), defaultdict[str, list[Keys]](list)
        self._waiting, self._looks_for = Counter(), self._worth_looking_for()
        now, marks = self._ports.clock.elapsed(), running_marks(self._ports.store)
        for mark in self._ports.resting.awake(_LOOP, marks, now):
            try:
                job_run = self._ports.job_runs.open(mark.job)
                if job_run is None or job_run.job.run != mark.run:
                    continue
                if read_outcome(self._ports.store, job_run.keys) is None:
                    seen.add((mark.job, mark.run))
                    owners[job_run.job.owner].append(job_run.keys)
                    self._look_or_fail(job_run)
                else:
                    until = now + spread(mark, self._ports.bounds.rest_seconds)
                    self._ports.resting.rest(_LOOP, mark, until)
            except (StoreError, BrokerError, FormatError):
                continue
        self._watches = {name: one for name, one in self._watches.items() if name in seen}
        self._damaged = {name: count for name, count in self._damaged.items() if name in seen}
        self._beats = {name: one for name, one in self._beats.items() if name in seen}
        self._crowded &= seen
        self._owners = set(owners)
        self._ports.loads.seen(owners, self._waiting)

    def _worth_looking_for(self) -> int:
        """Return how many missing tasks of a job to list: more if a lane fills, because owners
        share it by their counts."""
        limit, deepest = self._ports.bounds.lane_limit, 0
        with contextlib.suppress(BrokerError):
            deepest = max(self._ports.broker.depths().values())
        return max(ROUND, limit) if is_worth_counting(deepest, limit) else ROUND

    def _look_or_fail(self, job_run: JobRun) -> None:
        """Look at a job; fail it if its objects stay damaged.

        The reconciler must do this, because possibly no worker ever reads those objects.
        """
        name = job_run.job.id, job_run.job.run
        try:
            self._look(job_run)
            self._damaged.pop(name, None)
        except FormatError as error:
            self._damaged[name] = self._damaged.get(name, 0) + 1
            if is_suspect(self._damaged[name]):
                end_run(self._ports.store, self._ports.clock, job_run.keys, "failed", str(error))

    def _look(self, job_run: JobRun) -> None:
        facts = facts_of(self._ports.store, job_run)
        found = missing_tasks(job_run.shape, OneLook(facts), self._looks_for)
        lanes = (job_run.message(one).lane for one in found if one.kind == "map")
        self._waiting.update((job_run.job.owner, lane) for lane in lanes)
        missing = tuple(found[:ROUND])
        name, patience = (job_run.job.id, job_run.job.run), self._patience(job_run)
        idle = self._not_computed(job_run, missing, facts)
        now, is_computed = self._ports.clock.elapsed(), len(idle) < len(missing)
        watch = observe(
            self._watches.get(name), now, idle, facts.heard(), patience, is_computed=is_computed
        )
        self._watches[name] = watch
        if not missing and all_finished(job_run.shape, facts):
            end_done(self._ports.store, self._ports.clock, job_run)
        elif is_stuck(watch) and (other := self._misfit(job_run, watch)) is not None:
            reason = f"{PLANNED_ELSEWHERE}{other}, and no worker has it: ask it again"
            end_run(self._ports.store, self._ports.clock, job_run.keys, "failed", reason)
        elif is_stuck(watch):
            self._publish(job_run, watch)
            self._watches[name] = published(watch, patience)
        elif is_silent(watch, patience) and awaits_client(job_run.shape, facts):
            self._expire(job_run)

    def _misfit(self, job_run: JobRun, watch: Watch) -> str | None:
        """Return why no worker of this version may compute a question that gets nowhere."""
        if dataset_of(job_run) is None or stands_for(watch) <= _MISFIT_SECONDS:
            return None
        return misfit(job_run.job.versions, self._ports.compute.versions)

    def _not_computed(
        self, job_run: JobRun, missing: tuple[Task, ...], facts: StoreFacts
    ) -> tuple[Task, ...]:
        """Return the missing tasks except those that a worker computes right now."""
        name, now = (job_run.job.id, job_run.job.run), self._ports.clock.elapsed()
        marks = facts.running() if missing else {}
        beats = self._beats[name] = beating(self._beats.get(name, {}), marks, now)
        if beats and len(self._owners) > 1 and name not in self._crowded:
            self._tell_crowded(job_run)
            self._crowded.add(name)
        return not_computed(missing, beats, now, self._ports.bounds.stale_seconds)

    def _tell_crowded(self, job_run: JobRun) -> None:
        """Mark the job as crowded: its tasks take long, and there are jobs of other owners."""
        with contextlib.suppress(AlreadyExistsError):
            self._ports.store.create(job_run.keys.crowded, b"crowded", lasting=False)

    def _publish(self, job_run: JobRun, watch: Watch) -> None:
        depths = self._ports.broker.depths()
        bound = self._ports.bounds.nearly_empty
        messages = that_fit(self._messages(job_run, watch.missing), depths, bound)
        if messages:
            self._ports.broker.publish(messages)

    def _messages(self, job_run: JobRun, tasks: Iterable[Task]) -> Iterator[Message]:
        """Make the messages; those of a crowded job go to the slow lane.

        They may already wait there for long. In another lane they would overtake other tasks.
        """
        least = int((job_run.job.id, job_run.job.run) in self._crowded)
        for task in tasks:
            message = job_run.message(task)
            yield msgspec.structs.replace(message, slow=max(message.slow, least))

    def _expire(self, job_run: JobRun) -> None:
        seconds = job_run.job.request.options.silent_seconds
        reason = f"its client was silent for {seconds:g} seconds before it had sent everything"
        end_run(self._ports.store, self._ports.clock, job_run.keys, "expired", reason)

    def _patience(self, job_run: JobRun) -> Patience:
        bounds = self._ports.bounds
        return Patience(
            bounds.patience_seconds,
            bounds.patience_most_seconds,
            job_run.job.request.options.silent_seconds,
        )
