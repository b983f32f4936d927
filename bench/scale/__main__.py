"""Measure and write docs/scale.md: `make scale`."""

import argparse
import itertools
from pathlib import Path

from bench.scale.crowd import Crowd, Outlook
from bench.scale.page import Measured, page, read, write
from bench.scale.units import measure

LOADS = (0.5, 0.8, 0.95)
SMALL = 20, 2  # workers and gateways, to compare with


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=500)
    parser.add_argument("--gateways", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=90.0, help="in which jobs arrive")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--units", action="store_true", help="keep the crowd as it was measured")
    given = parser.parse_args()
    crowds = read().crowd if given.units else _crowds(given)
    measured = Measured(measure(), crowds)
    write(measured)
    given.write.write_text(page(measured), encoding="utf-8")


def _crowds(given: argparse.Namespace) -> tuple[Outlook, ...]:
    sizes = ((given.workers, given.gateways), SMALL)
    found = []
    for (workers, gateways), load in itertools.product(sizes, LOADS):
        seconds = given.seconds * (5 if workers == SMALL[0] else 1)
        found.append(Crowd(workers, gateways, load, seconds, given.seed).run())
        print(found[-1], flush=True)
    return tuple(found)


if __name__ == "__main__":
    main()
