"""Which seed catches which sabotage: `python -m tests.simulation.try_sabotage [--most N]`."""

import argparse
import sys
import time
from collections.abc import Iterable

from tests.simulation.invariants import ViolationError
from tests.simulation.sabotage import SABOTAGES
from tests.simulation.world import simulate


def first_catch(name: str, seeds: Iterable[int]) -> tuple[int, str] | None:
    """The first of these seeds that catches it, and how it shows."""
    chosen = SABOTAGES[name]
    for seed in seeds:
        with chosen.patch():
            try:
                simulate(seed, chosen.kinds)
            except ViolationError as error:
                return seed, str(error).splitlines()[-1]
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=500)
    parser.add_argument("names", nargs="*")
    chosen = parser.parse_args()
    missed = 0
    for name in chosen.names or SABOTAGES:
        began = time.perf_counter()
        caught = first_catch(name, range(chosen.most))
        missed += caught is None
        print(
            f"{name} | {caught or 'NOT CAUGHT'} | {time.perf_counter() - began:.1f} s", flush=True
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
