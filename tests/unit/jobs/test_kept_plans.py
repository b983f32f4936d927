"""Plans of questions are kept, and given only to the same question."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from caudal.formats.job import AskedDataset, AskedTable, Options, Request, Text
from caudal.formats.loads import LoadRequest, UpkeepRequest
from caudal.jobs import kept_plans
from caudal.jobs.interfaces import BusyError, Planned
from caudal.jobs.kept_plans import KeptPlans
from caudal.model import Query, Table

TABLE = Table("t", ("t.csv",), ("a",), "SELECT a FROM raw", "t.sql")
SHELF = AskedDataset("shelf", "datasets/ana/shelf/000001/", 1, (AskedTable("t", (("a", "INT"),)),))


def question(sql: str = "SELECT a FROM t", version: int = 1, **more: Any) -> Request:
    text = Text("app", "", (TABLE,), (Query("q", "", sql, "q.sql"),))
    dataset = msgspec.structs.replace(SHELF, version=version)
    return msgspec.structs.replace(Request(text, dataset=dataset), **more)


@dataclass
class Planner:
    """Plans by counting."""

    asked: list[Request] = field(default_factory=list)
    error: Exception | None = None

    def plan(self, request: Request, moment: float) -> Planned:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        return Planned(("t",), f"{len(self.asked)}".encode())


def test_another_version_or_place_has_the_same_plan() -> None:
    planner = Planner()
    plans = KeptPlans(planner.plan)
    first = plans.plan(question(), 1.0)
    assert plans.plan(question(version=7), 2.0) is first
    elsewhere = msgspec.structs.replace(SHELF, name="ana/shelf", root="datasets/ben/x/000002/")
    assert plans.plan(question(dataset=elsewhere), 3.0) is first
    assert len(planner.asked) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"queries": ("q",)},
        {"parameters": {"x": 1}},
        {"dataset": msgspec.UNSET},
        {"dataset": msgspec.structs.replace(SHELF, tables=(AskedTable("t", (("a", "TEXT"),)),))},
        {"application": Text("app", "", (TABLE,), (Query("q", "", "SELECT 1", "q.sql"),))},
        {"application": msgspec.structs.replace(question().application, sentiment="other")},
    ],
)
def test_another_question_is_planned(more: Mapping[str, Any]) -> None:
    planner = Planner()
    plans = KeptPlans(planner.plan)
    first = plans.plan(question(), 1.0)
    assert plans.plan(question(**more), 1.0) != first
    assert plans.plan(question(), 1.0) is first


@pytest.mark.parametrize("sql", ["SELECT now(), a FROM t", "SELECT a FROM t WHERE today() > a"])
def test_a_question_that_asks_the_clock_is_planned_each_time(sql: str) -> None:
    planner = Planner()
    plans = KeptPlans(planner.plan)
    for _ in range(2):
        plans.plan(question(sql), 1.0)
    assert len(planner.asked) == 2


def test_jobs_that_send_tables_have_one_plan_whatever_their_options() -> None:
    planner = Planner()
    plans = KeptPlans(planner.plan)
    first = plans.plan(question(dataset=msgspec.UNSET), 1.0)
    other = question(dataset=msgspec.UNSET, options=Options(partitions=2, keep_seconds=5.0))
    assert plans.plan(other, 2.0) is first
    assert len(planner.asked) == 1


def test_loads_and_upkeep_are_planned_each_time() -> None:
    planner = Planner()
    plans = KeptPlans(planner.plan)
    for more in ({"load": LoadRequest("shelf", ())}, {"upkeep": UpkeepRequest("shelf")}):
        for _ in range(2):
            plans.plan(question(dataset=msgspec.UNSET, **more), 1.0)
    assert len(planner.asked) == 4


def test_failures_are_not_kept() -> None:
    planner = Planner(error=BusyError("later"))
    plans = KeptPlans(planner.plan)
    with pytest.raises(BusyError):
        plans.plan(question(), 1.0)
    planner.error = None
    assert plans.plan(question(), 1.0).plan == b"2"


def test_what_was_not_used_for_longest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    planner = Planner()
    plans = KeptPlans(planner.plan, most=2)
    for sql in ("SELECT 1", "SELECT 2", "SELECT 1", "SELECT 3", "SELECT 1", "SELECT 2"):
        plans.plan(question(sql), 1.0)
    asked = [one.application.queries[0].sql for one in planner.asked]
    assert asked == ["SELECT 1", "SELECT 2", "SELECT 3", "SELECT 2"]
    monkeypatch.setattr(kept_plans, "MOST_BYTES", 0)
    for _ in range(2):
        plans.plan(question("SELECT 4"), 1.0)
    assert len(planner.asked) == 6
