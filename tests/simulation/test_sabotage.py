"""The simulation is worth something only if it catches code that is wrong."""

from itertools import chain

import pytest

from tests.simulation.sabotage import SABOTAGES
from tests.simulation.try_sabotage import first_catch

SEEDS = 500


# Not caught by any of 1,500 seeds since inputs are read when they are computed from: its known seed
# went another way. To be aimed at by a story of its own.
UNCAUGHT = {"a task that makes way is published for nobody"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(run=False, reason="no seed catches it now"))
        if name in UNCAUGHT
        else name
        for name in SABOTAGES
    ],
)
def test_caught(name: str) -> None:
    known = SABOTAGES[name].known
    assert first_catch(name, chain([known], range(SEEDS))) is not None
