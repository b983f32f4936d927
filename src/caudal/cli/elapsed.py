"""The time since the command began. Import it first."""

from time import perf_counter

_BEGAN = perf_counter()


def seconds_so_far() -> float:
    return perf_counter() - _BEGAN
