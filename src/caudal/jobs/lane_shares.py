"""Decides from counts, without I/O, how many batches of one owner may wait in a lane.

Rules
1. A lane that is not full is shared evenly by the owners whose batches wait in it. A single owner
   gets all of it.
2. A full lane still admits an owner with few batches in it, because other owners filled it. There
   is room above the limit for 16 such owners: brokers hold twice the limit (broker/topology.py).
"""

_LITTLE = 16  # an owner has few batches below 1/16 of a lane


def has_room(mine: int, owners: int, depth: int, limit: int) -> bool:
    """Return whether one more batch may wait. `owners` counts owners in the lane, this one too.

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
    """Return whether enough messages wait to count them by owner, which lists every batch."""
    return deepest >= max(1, limit // _LITTLE)
