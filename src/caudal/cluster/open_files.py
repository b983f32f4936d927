"""How many files a process may open: with too few, processes hang and say nothing."""

import resource

LEAST = 256  # below it nothing is started
WANTED = 1024


def allowed() -> int:
    """What this process, and all that it starts, may have open at once."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def remedy(least: int) -> str:
    """What to do if it is less; empty if it is enough."""
    return "" if allowed() >= least else f"raise it: ulimit -n {WANTED}"
