"""Which worker may compute the tasks of a job (ADR 65).

Two levels are raised by hand. A level of 1 is not written to job.json, as in jobs that are older
than levels:

- `plan`: raised when an older worker could misread plans. A worker runs plans up to its own level.
- `rows`: raised when the same input gives other rows, for example by another lexicon. All tasks of
  a job are computed by workers of one level.
"""

from collections.abc import Mapping

from caudal.errors import OtherVersionError

PLAN_LEVEL = 1
ROWS_LEVEL = 1
_EQUAL = ("rows", "hash", "mapped")  # what all tasks of a job have in common


def written_levels() -> dict[str, str]:
    """Return the levels of this Caudal as job.json has them."""
    levels = {"plan": PLAN_LEVEL, "rows": ROWS_LEVEL}
    return {name: str(level) for name, level in levels.items() if level > 1}


def require_plan(job_id: str, needed: Mapping[str, str], level: int = PLAN_LEVEL) -> None:
    """Raise OtherVersionError if a process that reads plans up to `level` cannot read the job's."""
    plan = needed.get("plan", "1")
    if not plan.isdecimal() or int(plan) > level:
        raise OtherVersionError(
            f"job {job_id} has a plan of level {plan[:20]}, this process reads level {level}"
        )


def require_fit(job_id: str, needed: Mapping[str, str], mine: Mapping[str, str]) -> None:
    """Raise OtherVersionError if an engine of versions `mine` must compute no task of the job."""
    for name in _EQUAL:
        have = mine.get(name, "1")
        if (wanted := needed.get(name, "1" if name == "rows" else have)) != have:
            raise OtherVersionError(
                f"job {job_id} was planned with {name} {wanted[:20]}, this worker has {have}"
            )
