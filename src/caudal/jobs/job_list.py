"""The list of an owner's jobs, the newest first. A page looks at a bounded number of them.

Left out are jobs in a format that this Caudal does not know, jobs that end meanwhile, and jobs
whose job.json or outcome is damaged: `GET /jobs/{J}` says so. The mark of a run that job.json does
not name is garbage (job_index.py, rule 1) and is deleted here.
"""

from itertools import islice

from caudal.errors import FormatError, NotFoundError
from caudal.formats.keys import Keys
from caudal.formats.replies import JobEntry, JobPage
from caudal.jobs import objects
from caudal.jobs.job_index import Mark, owned_marks
from caudal.jobs.runs import read_outcome
from caudal.store.port import Store


def jobs_of(store: Store, owner: str, after: str, limit: int) -> JobPage:
    """Return the owner's jobs behind `after`, the `next` of the page before: at most `limit`."""
    marks = list(islice(owned_marks(store, owner, after), limit + 1))
    found = [_entry(store, mark) for _, mark in marks[:limit]]
    jobs = tuple(one for one in found if one is not None)
    return JobPage(jobs, marks[limit - 1][0] if len(marks) > limit else None)


def _entry(store: Store, mark: Mark) -> JobEntry | None:
    try:
        job = objects.job_of(objects.job_bytes(store, mark.job), mark.job)
        if job.run != mark.run:
            raise NotFoundError(mark.key)
        outcome = read_outcome(store, Keys(job.id, job.run, job.request.options.group))
    except NotFoundError:
        store.delete(mark.key, lasting=False)
        return None
    except FormatError:
        return None
    state = outcome.state if outcome else "running"
    failed = tuple(outcome.failed) if outcome else ()
    return JobEntry(job.id, state, job.created, job.request.application.name, failed)
