"""docs/scale.md follows from measured numbers, and the simulated crowd behaves like a queue."""

from pathlib import Path

import pytest
from bench.scale.costs import Prices, Scenario, job_bill, loop_cost
from bench.scale.crowd import Crowd, Outlook
from bench.scale.page import page, read
from bench.scale.units import measure

PAGE = Path(__file__).parents[3] / "docs/scale.md"


def test_the_page_follows_from_what_was_measured() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read())


def test_the_measured_requests_are_those_of_this_code() -> None:
    """A change of what an act asks for shows here: run `make scale`."""
    now, then = measure(), read().units
    assert (now.requests, now.per_batch) == (then.requests, then.per_batch)
    assert now.messages == then.messages


def test_loops_cost_more_with_more_gateways_and_jobs_but_not_the_job() -> None:
    units = read().units
    small, large = Scenario(gateways=2), Scenario(gateways=20, jobs_a_day=100_000)
    costs = [Prices().of(loop_cost(units, one, "reconciler", 1.0).daily) for one in (small, large)]
    assert costs[0] < costs[1]
    assert job_bill(units, small) == job_bill(units, large)


@pytest.fixture(scope="module")
def crowds() -> list[Outlook]:
    return [Crowd(workers=20, gateways=3, load=load, seconds=60.0).run() for load in (0.4, 0.95)]


def test_waiting_grows_with_the_load(crowds: list[Outlook]) -> None:
    calm, busy = crowds
    assert calm.waited_mean < busy.waited_mean
    assert calm.job_mean < busy.job_mean
    assert calm.busy < busy.busy <= 1.0


def test_a_job_costs_the_same_at_any_load(crowds: list[Outlook]) -> None:
    """Messages follow from its batches; nothing is published or computed twice."""
    for one in crowds:
        assert one.computed_twice == 0
        assert one.tasks == round(one.messages_per_job * one.jobs)


def test_a_seed_repeats_its_run(crowds: list[Outlook]) -> None:
    assert Crowd(workers=20, gateways=3, load=0.4, seconds=60.0).run() == crowds[0]
