"""Which worker may compute the tasks of a job (ADR 65).

Two levels are raised by hand. A level of 1 is not written to job.json, as in jobs that are older
than levels:

- `plan`: raised when an older worker could misread plans. A worker runs plans up to its own level.
- `rows`: raised when the same input gives other rows, for example by another lexicon. All tasks of
  a job are computed by workers of one level. tests/unit/jobs/test_rows_level.py holds what kernels
  give at this level.

Map outputs over a dataset are read by later questions, too. So they are shared only among processes
that agree on everything in job.json, DuckDB and pyarrow included. A worker that agrees on less, but
fits, computes them for the one job.
"""

from collections.abc import Mapping

from caudal.errors import OtherVersionError

PLAN_LEVEL = 1
ROWS_LEVEL = 1
_EQUAL = ("rows", "hash", "mapped")  # what all tasks of a job have in common
# `plan` is a level of its own. The others were written by release 0.1.0, which had no level `rows`.
_NOT_OF_ROWS = frozenset({"plan", "caudal", "kernels"})


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
    if (name := misfit(needed, mine)) is not None:
        wanted, have = needed.get(name, "1"), mine.get(name, "1")
        raise OtherVersionError(
            f"job {job_id} was planned with {name} {wanted[:20]}, this worker has {have}"
        )


def misfit(needed: Mapping[str, str], mine: Mapping[str, str]) -> str | None:
    """Return what keeps an engine of versions `mine` from the tasks of a job; None if nothing."""
    for name in _EQUAL:
        have = mine.get(name, "1")
        if needed.get(name, "1" if name == "rows" else have) != have:
            return name
    return None


def may_share(needed: Mapping[str, str], mine: Mapping[str, str]) -> bool:
    """Return whether a map output of an engine of versions `mine` has the key of a job's versions.

    A name that this release does not know counts: a later one may have added it for a reason.

    >>> may_share({"caudal": "0.1.0", "duckdb": "1.5"}, {"duckdb": "1.5"})
    True
    >>> may_share({"duckdb": "1.5"}, {"duckdb": "1.6"})
    False
    """
    return _of_rows(needed) == _of_rows(mine)


def _of_rows(versions: Mapping[str, str]) -> dict[str, str]:
    return {name: one for name, one in versions.items() if name not in _NOT_OF_ROWS}
