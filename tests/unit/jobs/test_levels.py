"""Which workers may compute the tasks of a job, and whose map outputs are shared (ADR 65)."""

import pytest

from caudal.errors import OtherVersionError
from caudal.jobs.levels import may_share, misfit, require_fit, require_plan

MINE = {"hash": "1", "mapped": "CAUDALM2", "duckdb": "1.5.0", "pyarrow": "24"}
RELEASE_0_1_0 = {**MINE, "caudal": "0.1.0", "kernels": "a digest"}


@pytest.mark.parametrize(
    ("needed", "shares"),
    [
        (MINE, True),
        (RELEASE_0_1_0, True),
        ({**RELEASE_0_1_0, "kernels": "another"}, True),
        ({**MINE, "plan": "2"}, True),
        ({**MINE, "duckdb": "1.6.0"}, False),
        ({**MINE, "pyarrow": "25"}, False),
        ({**MINE, "rows": "2"}, False),
        ({**MINE, "hash": "2"}, False),
        ({**MINE, "mapped": "CAUDALM3"}, False),
        ({**MINE, "added later": "1"}, False),
        ({}, False),
    ],
)
def test_outputs_are_shared_by_what_their_rows_may_depend_on(
    needed: dict[str, str], *, shares: bool
) -> None:
    assert may_share(needed, MINE) is shares
    assert may_share(MINE, needed) is shares


@pytest.mark.parametrize("name", ["rows", "hash", "mapped"])
def test_all_tasks_of_a_job_agree_on_levels(name: str) -> None:
    needed = {**MINE, name: "9"}
    assert misfit(needed, MINE) == name
    assert misfit(MINE, needed) == name
    with pytest.raises(OtherVersionError, match=f"job j was planned with {name} 9, this worker"):
        require_fit("j", needed, MINE)


@pytest.mark.parametrize(
    "needed",
    [{}, RELEASE_0_1_0, {**MINE, "duckdb": "2"}, {**MINE, "plan": "2"}, {**MINE, "rows": "1"}],
)
def test_nothing_else_keeps_a_worker_from_a_job(needed: dict[str, str]) -> None:
    assert misfit(needed, MINE) is None
    require_fit("j", needed, MINE)


@pytest.mark.parametrize("plan", ["3", "x", "", "-1"])
def test_a_plan_of_a_higher_or_unknown_level_is_not_read(plan: str) -> None:
    require_plan("j", {"plan": "2"}, 2)
    require_plan("j", {}, 1)
    with pytest.raises(OtherVersionError, match="job j has a plan of level"):
        require_plan("j", {"plan": plan}, 2)
