"""The simulation is worth something only if it catches code that is wrong."""

from itertools import chain

import pytest

from tests.simulation.sabotage import SABOTAGES
from tests.simulation.try_sabotage import first_catch

SEEDS = 500


@pytest.mark.parametrize("name", SABOTAGES)
def test_caught(name: str) -> None:
    known = SABOTAGES[name].known
    assert first_catch(name, chain([known], range(SEEDS))) is not None
