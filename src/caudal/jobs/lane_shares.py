"""How many batches of one owner may wait in a lane: decided from counts, without I/O.

Rules
1. A lane that is not full is shared evenly by the owners whose batches wait in it; whoever is alone
   has all of it.
2. Who has little in a full lane is let in all the same: others filled it before. Of so much there
   is room for 16 owners above the limit, since brokers hold twice as much (broker/topology.py).
"""

_LITTLE = 16  # this part of a lane is little


def has_room(mine: int, owners: int, depth: int, limit: int) -> bool:
    """May one more batch wait? `owners` have batches in the lane, the asking one among them.

    >>> has_room(9_999, 1, 9_999, 10_000), has_room(5_000, 2, 9_000, 10_000)
    (True, False)
    >>> has_room(0, 2, 10_000, 10_000), has_room(625, 2, 10_000, 10_000)
    (True, False)
    >>> has_room(10_000, 1, 0, 10_000)
    True
    """
    little = max(1, limit // _LITTLE)
    mine = min(mine, depth)  # counted a while ago: what workers took since does not wait
    return mine < (little if depth >= limit else max(little, limit // owners))


def is_worth_counting(deepest: int, limit: int) -> bool:
    """Do so many wait that it matters whose they are? Counting means listing every batch."""
    return deepest >= max(1, limit // _LITTLE)
