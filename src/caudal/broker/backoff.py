"""The pause before the next attempt to connect."""

import random

FIRST_SECONDS = 0.1
MOST_SECONDS = 1.0


def pause_seconds(failures: int, chance: random.Random) -> float:
    """Return the pause after this many failures. It doubles with each one, up to a bound.

    Half of it is random. So a hundred workers that lost their broker at the same moment do not all
    reconnect at the same moment.
    """
    most = min(MOST_SECONDS, FIRST_SECONDS * (1 << min(max(failures - 1, 0), 10)))
    return most * (0.5 + chance.random() / 2)
