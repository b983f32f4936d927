"""How many examples a costly property is tried with.

`make test` tries a few, the same ones every time. `make properties TIMES=20` tries twenty times as
many, and new ones.
"""

import os

TIMES = int(os.environ.get("CAUDAL_TIMES", "1"))


def examples(count: int) -> int:
    """Return `count`, or so many times as many as this run asks for."""
    return count * TIMES
