"""How many examples a costly property is tried with.

`make test` tries a few, the same ones every time. `make properties TIMES=20` tries twenty times as
many, and new ones. Where a test kills or freezes at every place of a long run on a slow store, and
another does so on a quick one, `make test` takes one place in several on the slow one.
"""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

Place = TypeVar("Place")

TIMES = int(os.environ.get("CAUDAL_TIMES", "1"))


def examples(count: int) -> int:
    """Return `count`, or so many times as many as this run asks for."""
    return count * TIMES


def spread(places: Sequence[Place], one_in: int) -> Sequence[Place]:
    """Return one place in so many, drawn with a fixed seed; all if this run asks for more."""
    if TIMES > 1:
        return places
    drawn = random.Random(0).sample(range(len(places)), -(-len(places) // one_in))
    return [places[at] for at in sorted(drawn)]
