"""Whether a job that ended has all its answers, so that asking the same again finds them."""

from caudal.jobs.runs import JobRun, read_outcome
from caudal.jobs.shared_maps import facts_of
from caudal.store.port import Store


def lacks_answers(store: Store, job_run: JobRun) -> bool:
    """Return whether the job ended without all its answers, or lost them."""
    outcome = read_outcome(store, job_run.keys)
    if outcome is None:
        return False
    finished = facts_of(store, job_run).finished()
    has_all = outcome.state == "done" and not outcome.failed
    return not has_all or not finished.issuperset(job_run.shape.finishes)
