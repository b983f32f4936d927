"""The list of an owner's jobs. Every job.json must be read, so a page reads a bounded number.

Left out are jobs in a format that this Caudal does not know, jobs that end meanwhile, and jobs
whose job.json or outcome is damaged: `GET /jobs/{J}` says so.
"""

from collections.abc import Iterator

from caudal.errors import FormatError, NotFoundError
from caudal.formats.keys import Keys
from caudal.formats.replies import JobEntry, JobPage
from caudal.jobs import objects
from caudal.jobs.runs import read_outcome
from caudal.store.port import Store

_LOOKED_AT = 1000  # most jobs, of all owners, that are read per page


def jobs_of(store: Store, owner: str, after: str, limit: int) -> JobPage:
    """Return the owner's jobs behind `after`: at most `limit`, fewer if many belong to others."""
    prefix = "jobs/"
    start = f"{prefix}{after}/" if after else ""
    page = store.list(prefix, recursive=False, after=start, limit=_LOOKED_AT)
    names = [folder[len(prefix) : -1] for folder in page.folders]
    found: list[JobEntry] = []
    for name in names:
        found += _entries(store, name, owner)
        if len(found) == limit:
            return JobPage(tuple(found), name if name != names[-1] or page.last else None)
    return JobPage(tuple(found), names[-1] if page.last and names else None)


def _entries(store: Store, job_id: str, owner: str) -> Iterator[JobEntry]:
    try:
        job = objects.job_of(objects.job_bytes(store, job_id), job_id)
        if job.owner != owner:
            return
        outcome = read_outcome(store, Keys(job.id, job.run, job.request.options.group))
    except (NotFoundError, FormatError):
        return
    state = outcome.state if outcome else "running"
    failed = tuple(outcome.failed) if outcome else ()
    yield JobEntry(job.id, state, job.created, job.request.application.name, failed)
