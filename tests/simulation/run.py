"""Many runs, one after the other: `python -m tests.simulation.run --seeds 300 --first 0`.

`--seed K` runs one seed and prints its trace. Exits with 1 if a run fails.
"""

import argparse
import sys
import time
from collections import Counter

from tests.simulation.invariants import ViolationError
from tests.simulation.scheduler import Coverage
from tests.simulation.world import World, simulate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    chosen = parser.parse_args()
    return show(chosen.seed) if chosen.seed is not None else many(chosen.first, chosen.seeds)


def show(seed: int) -> int:
    world = World(seed)
    try:
        world.run()
    except Exception as error:
        print(world.scheduler.readable(last=100_000))
        print(f"seed {seed}: {error!r}")
        return 1
    print(world.scheduler.readable(last=100_000))
    return 0


def many(first: int, seeds: int) -> int:
    began, coverage, outcomes = time.perf_counter(), Coverage(), Counter[str]()
    steps = answers = longest = 0
    for seed in range(first, first + seeds):
        try:
            report = simulate(seed)
        except ViolationError as error:
            print(error)
            return 1
        coverage.add(report.coverage)
        outcomes.update(report.outcomes)
        steps += report.steps
        longest = max(longest, report.steps)
        answers += report.answers
    seconds = time.perf_counter() - began
    points, unreached = coverage.points(), coverage.unreached()
    print(f"{seeds} seeds from {first} in {seconds:.1f} s: {seeds / seconds:.1f} seeds/s")
    print(f"{steps} steps (at most {longest} in a run), {answers} results checked")
    print(f"outcomes: {dict(outcomes)}")
    print(f"faults: {dict(coverage.faults)}")
    print(f"crash points reached: {len(points) - len(unreached)} of {len(points)}")
    print("not reached:", ", ".join(unreached) or "none")
    return 0


if __name__ == "__main__":
    sys.exit(main())
