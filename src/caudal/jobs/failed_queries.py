"""Queries that failed while their job goes on (ADR 27).

Rules
1. What a query does wrong is its own: its fold or result says why in the place of rows, and whoever
   reads that says the same. So readiness, races and the end of a job are as for any other object.
2. Of several failures the first counts, by the order of a step's inputs, then by batch or
   partition. Arrival decides nothing.
3. All else fails the job: what a map does besides its scans, the rejects report, damaged objects.
   So does a fold that is condemned after it killed workers: each of its partitions would kill more.
"""

import contextlib
from collections.abc import Iterable, Sequence

from caudal.errors import FormatError, NotFoundError, QueryError
from caudal.formats import outputs
from caudal.formats.keys import REJECTS, Task
from caudal.formats.outcomes import Outcome
from caudal.jobs import objects
from caudal.jobs.facts import StoreFacts
from caudal.jobs.interfaces import Clock, CondemnedError, is_suspect
from caudal.jobs.runs import JobRun, end_run
from caudal.store.port import Store


def failed_output(job_run: JobRun, task: Task, error: Exception, deliveries: int) -> bytes | None:
    """The output of a task that must fail, if that is its queries' failure; else None (rule 3)."""
    if task.kind == "fold":
        if isinstance(error, CondemnedError) and is_suspect(deliveries):
            return None
        fold = next(one for one in job_run.split.plan.folds if one.name == task.name)
        why = _reason(job_run, fold.queries, error)
        return outputs.encode_failed_fold(task.name, task.number, why) if why else None
    if task.kind == "finish" and task.name != REJECTS:
        whose = outputs.Whose(job_run.job.id, job_run.job.run, task.name)
        why = _reason(job_run, [task.name], error)
        title = job_run.split.query(task.name).title
        return outputs.encode_failed_result(whose, title, why) if why else None
    return None


def _reason(job_run: JobRun, queries: Sequence[str], error: Exception) -> str:
    """Why these queries failed; nothing if the error is not theirs."""
    if isinstance(error, CondemnedError):
        return f"{', '.join(job_run.split.query(name).origin for name in queries)}: {error}"
    return str(error) if isinstance(error, QueryError) else ""


def failed_queries(store: Store, job_run: JobRun, finished: Iterable[str]) -> dict[str, str]:
    """Why queries failed, of those that are finished. Results never change: each is read once in
    this life. What is damaged or deleted is left out: whoever asks for it is told."""
    for name in job_run.shape.finishes.keys() & set(finished) - job_run.verdicts.keys():
        with contextlib.suppress(NotFoundError, FormatError):
            job_run.verdicts[name] = objects.result(store, job_run.keys, name).index.error
    found = {name: job_run.verdicts.get(name, "") for name in finished}
    return {name: why for name, why in sorted(found.items()) if why}


def end_done(store: Store, clock: Clock, job_run: JobRun) -> Outcome:
    """End a job all of whose results are there; its outcome names those that hold no rows."""
    finished = StoreFacts(store, job_run.keys).finished()
    failed = failed_queries(store, job_run, finished)
    return end_run(store, clock, job_run.keys, "done", failed=failed)
