"""How long to wait before trying to connect again."""

import random

FIRST_SECONDS = 0.1
MOST_SECONDS = 2.0


def pause_seconds(failures: int, chance: random.Random) -> float:
    """Doubles with every failure up to a bound; half of it is chance, so that a hundred workers
    that lost their broker at the same moment do not come back at the same moment."""
    most = min(MOST_SECONDS, FIRST_SECONDS * (1 << min(max(failures - 1, 0), 10)))
    return most * (0.5 + chance.random() / 2)
