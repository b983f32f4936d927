"""The simulation is worth something only if it catches code that is wrong."""

from itertools import chain
from unittest import mock

import pytest

from caudal.medic import supervision
from tests.simulation.medics import World
from tests.simulation.sabotage import PLAIN, SABOTAGES, calmly, every_task_makes_way
from tests.simulation.try_sabotage import first_catch
from tests.simulation.world import simulate

SEEDS = 500


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", SABOTAGES)
def test_caught(name: str) -> None:
    known = SABOTAGES[name].known
    assert first_catch(name, chain([known], range(SEEDS))) is not None


@pytest.mark.parametrize("seed", range(3))
def test_a_world_in_which_every_task_makes_way_is_well(seed: int) -> None:
    with calmly(every_task_makes_way()):
        simulate(seed, PLAIN)


def test_orders_that_are_believed_whenever_they_come_restart_who_is_well() -> None:
    needless = 0
    with mock.patch.object(supervision, "agrees", return_value=True):
        for seed in range(30):
            world = World(seed)
            world.run(60, faults=True)
            needless += world.report.needless
    assert needless > 0
