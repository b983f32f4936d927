"""The simulation is worth something only if it catches code that is wrong."""

import pytest

from tests.simulation.sabotage import SABOTAGES
from tests.simulation.try_sabotage import first_catch

SEEDS = 500


@pytest.mark.parametrize("name", SABOTAGES)
def test_caught(name: str) -> None:
    assert first_catch(name, SEEDS) is not None
