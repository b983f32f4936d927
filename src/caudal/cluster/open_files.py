"""The limit on open files: if it is too low, processes hang without a message."""

import resource

from caudal.errors import UsageError

LEAST = 256  # below this nothing is started
WANTED = 1024


def allowed() -> int:
    """Return how many files this process and its children may have open at once."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def require() -> None:
    """Raise UsageError if what this process starts could open too few files."""
    if how := remedy(LEAST):
        raise UsageError(f"each process may open only {allowed()} files, which is too few: {how}")


def remedy(least: int) -> str:
    """Return what to do if fewer than `least` are allowed; "" if it is enough."""
    return "" if allowed() >= least else f"raise it: ulimit -n {WANTED}"
