"""Planning in children: what takes too much is refused, and nobody else is harmed."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.harness.waiting import GUARD_SECONDS, until

from caudal.application.folder import find_application
from caudal.errors import ApplicationError, QueryError, UsageError
from caudal.formats.job import Request, Text
from caudal.gateway.planner_process import PlanLimits
from caudal.gateway.planners import Planners
from caudal.jobs.interfaces import BusyError
from caudal.model import Query, Table
from caudal.worker.compute import LocalCompute

LIMITS = PlanLimits(cpu_seconds=1, memory_bytes=300 << 20, patience_seconds=GUARD_SECONDS)
TABLE = Table("t", ("t.csv",), ("k",), "SELECT k FROM raw", "t.sql")
EACH_TWICE = (  # 700 bytes
    "WITH a0 AS (SELECT k FROM t), "
    + ", ".join(f"a{n} AS (SELECT x.k FROM a{n - 1} x, a{n - 1} y)" for n in range(1, 18))
    + " SELECT count(*) FROM a17"
)
CORRELATED = (
    "SELECT k"
    + "".join(f", (SELECT max(k) FROM t t{n} WHERE t{n}.k < t.k)" for n in range(80))
    + " FROM t"
)
BOMBS = [EACH_TWICE, CORRELATED]


def asking(sql: str) -> Request:
    return Request(Text("little", "", (TABLE,), (Query("q", "", sql, "q.sql"),)))


GOOD = asking("SELECT k, count(*) AS n FROM t GROUP BY k")


@pytest.fixture(scope="module")
def planners() -> Iterator[Planners]:
    made = Planners(1, LIMITS)
    yield made
    made.close()


@pytest.mark.parametrize("app", ["books", "movies"])
def test_plans_are_those_of_this_process(planners: Planners, app: str) -> None:
    request = Request(Text.of(find_application(app)))
    compute = LocalCompute()
    assert planners.plan(request, 7.0) == compute.plan(request, 7.0)
    compute.close()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sql", BOMBS, ids=["each twice", "correlated"])
def test_what_takes_too_much_is_refused_with_the_reason(planners: Planners, sql: str) -> None:
    with pytest.raises(QueryError, match=r"takes more than (1 s of CPU time|300 MiB of memory)"):
        planners.plan(asking(sql), 0.0)
    assert planners.plan(GOOD, 0.0).tables == ("t",)


@pytest.mark.long
def test_memory_is_bounded_too() -> None:
    planners = Planners(1, replace(LIMITS, cpu_seconds=60, memory_bytes=20 << 20))
    try:
        with pytest.raises(QueryError, match="memory"):
            planners.plan(asking(EACH_TWICE), 0.0)
    finally:
        planners.close()


def test_long_texts_and_long_plans_are_refused(planners: Planners) -> None:
    with pytest.raises(ApplicationError, match="bytes of SQL"):
        planners.plan(asking("SELECT 1 /*" + "x" * (256 << 10) + "*/"), 0.0)
    small = Planners(1, replace(LIMITS, plan_bytes=100))
    try:
        with pytest.raises(QueryError, match="a plan of"):
            small.plan(GOOD, 0.0)
    finally:
        small.close()


def test_what_planning_raises_is_raised_here(planners: Planners) -> None:
    with pytest.raises(ApplicationError, match='"nope" not found'):
        planners.plan(asking("SELECT nope FROM t"), 0.0)
    text = replace_sentiment(GOOD, "no such model")
    with pytest.raises(UsageError, match="no such model"):
        planners.plan(text, 0.0)


def replace_sentiment(request: Request, name: str) -> Request:
    text = request.application
    return Request(Text(text.name, "", text.tables, text.queries, {}, name))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "FROM arrow_scan(1::POINTER, 2::POINTER, 3::POINTER)",
        "FROM query('FROM read_text(1)')",
    ],
)
def test_sql_that_reaches_for_more_is_refused_before_it_is_bound(
    planners: Planners, sql: str
) -> None:
    with pytest.raises(ApplicationError, match="cannot be used here"):
        planners.plan(asking(sql), 0.0)


def pids(planners: Planners) -> list[int]:
    return [child._process.pid for child in planners._all]


def test_a_child_killed_from_outside_is_no_reason_to_refuse(planners: Planners) -> None:
    planners.plan(GOOD, 0.0)
    (before,) = pids(planners)
    os.kill(before, signal.SIGKILL)
    assert planners.plan(GOOD, 0.0).tables == ("t",)
    assert pids(planners) != [before]


def test_a_crash_of_the_child_is_the_requests_fault() -> None:
    planners = Planners(1, replace(LIMITS, cpu_seconds=60))
    try:
        planners.plan(GOOD, 0.0)
        (child,) = pids(planners)
        with ThreadPoolExecutor(1) as pool:
            refused = pool.submit(planners.plan, asking(EACH_TWICE), 0.0)
            until(lambda: not planners._idle.qsize())
            os.kill(child, signal.SIGSEGV)
            with pytest.raises(QueryError, match="crashes DuckDB"):
                refused.result()
    finally:
        planners.close()


def test_children_are_renewed_and_none_is_left() -> None:
    planners = Planners(1, replace(LIMITS, plans_per_child=2))
    seen = set()
    for _ in range(4):
        planners.plan(GOOD, 0.0)
        seen |= set(pids(planners))
    assert len(seen) >= 2
    planners.close()
    for pid in seen:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_who_finds_no_child_in_time_is_told_to_come_again() -> None:
    planners = Planners(0, LIMITS, wait_seconds=0.0)
    with pytest.raises(BusyError, match="try again"):
        planners.plan(GOOD, 0.0)
    planners.close()
