"""Runs under faults, and the properties of the simulation itself."""

import contextlib

import pytest

from tests.simulation.invariants import ViolationError
from tests.simulation.sabotage import calmly
from tests.simulation.tally import run_all
from tests.simulation.test_coverage import SEEDS
from tests.simulation.world import World, simulate


def test_right_rows_or_a_reason_and_nothing_left() -> None:
    """The first seeds are run by test_coverage.py; `make simulate` runs as many as wanted."""
    run_all(range(SEEDS, 2 * SEEDS))


def test_a_broker_that_loses_nothing_needs_no_reconciler() -> None:
    """What is published before it is acknowledged is enough, whoever is killed."""
    for seed in range(20):
        with calmly(contextlib.nullcontext()):
            simulate(seed, ("plain",))


def test_a_seed_replays_exactly() -> None:
    traces = []
    for _ in range(2):
        world = World(11)
        world.run()
        traces.append(world.scheduler.readable(last=100_000))
        world.scheduler.close()
    assert traces[0] == traces[1]
    assert traces[0].count("\n") > 100


def test_a_failure_names_its_seed_and_shows_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.simulation.world.MOST_STEPS", 50)
    with pytest.raises(ViolationError, match="no end after 50 steps") as caught:
        simulate(3)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("seed 3: ")
    assert any("worker" in line and "take" in line for line in lines[1:-1])
