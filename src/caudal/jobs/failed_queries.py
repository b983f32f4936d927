"""Queries that fail while their job continues (ADR 27).

Rules
1. An error that a query causes fails only this query. Its fold or result holds the error instead
   of rows, and every task that reads it fails with the same error. So readiness, races and the end
   of a job work as for any other object.
2. Of several failures the first counts, by the order of a step's inputs, then by batch or
   partition. The time of arrival has no influence.
3. All other errors fail the job: those of a map outside its scans, of the rejects report, and of
   damaged objects. So does a fold that is condemned after it killed workers, because each of its
   partitions would kill more.
"""

import contextlib
from collections.abc import Iterable, Sequence

from caudal.errors import FormatError, NotFoundError, QueryError
from caudal.formats import outputs
from caudal.formats.keys import REJECTS, Task
from caudal.formats.outcomes import Outcome
from caudal.jobs import objects
from caudal.jobs.interfaces import Clock, CondemnedError, is_suspect
from caudal.jobs.runs import JobRun, end_run
from caudal.jobs.shared_maps import facts_of
from caudal.store.port import Store


def failed_output(job_run: JobRun, task: Task, error: Exception, deliveries: int) -> bytes | None:
    """Return the output of a failing task if its queries caused the error; else None (rule 3)."""
    if task.kind == "fold":
        if isinstance(error, CondemnedError) and is_suspect(deliveries):
            return None
        fold = next(one for one in job_run.split.plan.folds if one.name == task.name)
        why = _reason(job_run, fold.queries, error)
        return outputs.encode_failed_fold(task.name, task.number, why) if why else None
    if task.kind == "finish" and task.name not in {REJECTS, *job_run.shape.commits}:
        whose = outputs.Whose(job_run.job.id, job_run.job.run, task.name)
        why = _reason(job_run, [task.name], error)
        title = job_run.split.query(task.name).title
        return outputs.encode_failed_result(whose, title, why) if why else None
    return None


def _reason(job_run: JobRun, queries: Sequence[str], error: Exception) -> str:
    """Return why these queries failed; an empty string if they did not cause the error."""
    if isinstance(error, CondemnedError):
        return f"{', '.join(job_run.split.query(name).origin for name in queries)}: {error}"
    return str(error) if isinstance(error, QueryError) else ""


def failed_queries(store: Store, job_run: JobRun, finished: Iterable[str]) -> dict[str, str]:
    """Return the errors of those finished queries that failed.

    Results never change, so each is read once per run. Damaged or deleted results are left out; a
    request for one of them gets the error.
    """
    for name in job_run.shape.finishes.keys() & set(finished) - job_run.verdicts.keys():
        with contextlib.suppress(NotFoundError, FormatError):
            job_run.verdicts[name] = objects.result(store, job_run.keys, name).index.error
    found = {name: job_run.verdicts.get(name, "") for name in finished}
    return {name: why for name, why in sorted(found.items()) if why}


def end_done(store: Store, clock: Clock, job_run: JobRun) -> Outcome:
    """End a job that has all its results. The outcome names the queries that failed."""
    finished = facts_of(store, job_run).finished()
    failed = failed_queries(store, job_run, finished)
    return end_run(store, clock, job_run.keys, "done", failed=failed)
