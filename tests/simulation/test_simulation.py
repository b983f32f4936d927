"""300 runs under faults, a different 50 per test; and the properties of the simulation itself."""

import contextlib

import pytest

from tests.simulation.invariants import ViolationError
from tests.simulation.sabotage import calmly
from tests.simulation.world import World, simulate

CHUNK = 50


@pytest.mark.parametrize("first", range(0, 300, CHUNK))
def test_right_rows_or_a_reason_and_nothing_left(first: int) -> None:
    for seed in range(first, first + CHUNK):
        simulate(seed)


def test_a_broker_that_loses_nothing_needs_no_reconciler() -> None:
    """What is published before it is acknowledged is enough, whoever is killed."""
    for seed in range(30):
        with calmly(contextlib.nullcontext()):
            simulate(seed, ("plain",))


def test_a_seed_replays_exactly() -> None:
    one, other = World(11), World(11)
    one.run()
    other.run()
    assert one.scheduler.trace == other.scheduler.trace


def test_a_failure_names_its_seed_and_shows_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.simulation.world.MOST_STEPS", 50)
    with pytest.raises(ViolationError, match="no end after 50 steps") as caught:
        simulate(3)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("seed 3: ")
    assert any("worker" in line and "take" in line for line in lines[1:-1])
