"""Runs with a dataset under faults, and the ways to break it that they must catch."""

from itertools import chain

import pytest

from tests.simulation.dataset_sabotage import DATASET_SABOTAGES, first_dataset_catch
from tests.simulation.dataset_world import DatasetWorld, simulate_dataset

SEEDS = 8


def test_right_rows_of_every_version_and_nothing_left() -> None:
    """`make simulate` runs as many as wanted."""
    assert sum(simulate_dataset(seed).answers for seed in range(SEEDS)) > 2 * SEEDS


def test_a_seed_with_a_dataset_replays_exactly() -> None:
    traces = []
    for _ in range(2):
        world = DatasetWorld(3)
        world.run()
        traces.append(world.scheduler.readable(last=100_000))
        world.scheduler.close()
    assert traces[0] == traces[1]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", DATASET_SABOTAGES)
def test_caught_with_a_dataset(name: str) -> None:
    known = DATASET_SABOTAGES[name][1]
    assert first_dataset_catch(name, chain([known], range(300))) is not None
