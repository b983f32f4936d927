"""Many runs: `python -m tests.simulation.run --seeds 300 --first 0 --processes 2`.

At the end a process is killed at every point of the code that these seeds left out. A failure
prints the seed and the trace, and the exit status is 1. `--seed K` runs one seed and prints its
trace. `--datasets` runs worlds with a dataset.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import msgspec

from tests.simulation.dataset_world import DatasetWorld, simulate_dataset
from tests.simulation.invariants import ViolationError
from tests.simulation.random_applications import BLOCK
from tests.simulation.tally import Simulate, Tally, reach_the_rest, run_all
from tests.simulation.world import World, simulate


class Progress(msgspec.Struct):
    """A line that a child process writes: what a block of seeds came to, or how one failed."""

    tally: Tally | None = None
    failure: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)  # of a child process
    parser.add_argument("--datasets", action="store_true")
    chosen = parser.parse_args()
    if chosen.seed is not None:
        return show(DatasetWorld(chosen.seed) if chosen.datasets else World(chosen.seed))
    run = simulate_dataset if chosen.datasets else simulate
    if chosen.part is not None:
        return work(chosen.first, chosen.seeds, chosen.part, chosen.processes, run)
    return Many(chosen.first, chosen.seeds, chosen.processes, run).run()


def show(world: World) -> int:
    try:
        world.run()
        status, last = 0, "passed"
    except Exception as error:
        status, last = 1, repr(error)
    print(world.scheduler.readable(last=100_000))
    print(f"seed {world.seed}: {last}")
    world.scheduler.close()
    return status


def blocks(first: int, seeds: int) -> Iterator[range]:
    """Seeds that share a random application stay together."""
    end = first + seeds
    while first < end:
        after = min((first // BLOCK + 1) * BLOCK, end)
        yield range(first, after)
        first = after


def work(first: int, seeds: int, part: int, parts: int, run: Simulate) -> int:
    """What one of several processes does: every so-manieth block, a line for each.

    The lines have standard output to themselves: libraries print there, too.
    """
    with os.fdopen(os.dup(1), "wb") as lines:
        os.dup2(2, 1)
        mine = [one for number, one in enumerate(blocks(first, seeds)) if number % parts == part]
        return _report_blocks(lines, mine, run)


def _report_blocks(lines: BinaryIO, mine: Sequence[range], run: Simulate) -> int:
    for block in mine:
        try:
            line = Progress(run_all(block, run))
        except ViolationError as error:
            line = Progress(failure=str(error))
        lines.write(msgspec.json.encode(line) + b"\n")
        lines.flush()
        if line.failure:
            return 1
    return 0


class Many:
    """Child processes, and the sum of what they report."""

    def __init__(self, first: int, seeds: int, processes: int, run: Simulate) -> None:
        self._simulate = run
        self._first = first
        self._seeds = seeds
        self._processes = processes
        self._tally = Tally()
        self._failures: list[str] = []
        self._lock = threading.Lock()
        self._began = time.monotonic()

    def run(self) -> int:
        children = [self._start(part) for part in range(self._processes)]
        readers = [threading.Thread(target=self._read, args=(one, children)) for one in children]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        broken = [child.returncode for child in children if child.wait()]
        if self._failures or broken:
            print("\n".join(self._failures) or f"a child process ended with {broken}")
            return 1
        return self._finish()

    def _start(self, part: int) -> "subprocess.Popen[bytes]":
        numbers = {
            "--first": self._first,
            "--seeds": self._seeds,
            "--processes": self._processes,
            "--part": part,
        }
        options = [word for name, number in numbers.items() for word in (name, str(number))]
        options += ["--datasets"] if self._simulate is simulate_dataset else []
        command = [sys.executable, "-m", "tests.simulation.run", *options]
        return subprocess.Popen(command, stdout=subprocess.PIPE)

    def _read(
        self, child: "subprocess.Popen[bytes]", children: list["subprocess.Popen[bytes]"]
    ) -> None:
        assert child.stdout is not None
        with child.stdout as lines:
            for line in lines:
                self._hear(msgspec.json.decode(line, type=Progress), children)

    def _hear(self, told: Progress, children: list["subprocess.Popen[bytes]"]) -> None:
        with self._lock:
            if told.failure:
                self._failures.append(told.failure)
                for child in children:
                    child.terminate()
            if told.tally is not None:
                self._tally.add(told.tally)
                seconds = time.monotonic() - self._began
                done = f"{self._tally.seeds} of {self._seeds} seeds"
                print(f"{done}, {self._tally.seeds / seconds:.1f} a second", flush=True)

    def _finish(self) -> int:
        """Reach the points that are left, and report."""
        tally, seconds = self._tally, time.monotonic() - self._began
        random = len(tally.coverage().points()) - len(tally.coverage().unreached())
        print(report(tally, self._first, seconds))
        try:
            aimed = sum(1 for _ in reach_the_rest(tally, self._simulate))
        except ViolationError as error:
            print(error)
            return 1
        points, left = tally.coverage().points(), tally.coverage().unreached()
        print(
            f"points of the code at which a process was killed: {len(points) - len(left)} of "
            f"{len(points)}, {random} by chance and the rest by {aimed} runs aimed at them"
        )
        for point in left:
            print(f"  not reached: {point}")
        return 1 if left else 0


def report(tally: Tally, first: int, seconds: float) -> str:
    rate = tally.seeds / seconds
    outcomes = ", ".join(f"{number} {name}" for name, number in sorted(tally.outcomes.items()))
    faults = ", ".join(f"{number} {name}" for name, number in sorted(tally.faults.items()))
    return (
        f"{tally.seeds} seeds from {first} in {seconds:.0f} s: {rate:.1f} a second\n"
        f"{tally.steps} turns (at most {tally.longest} in a run), {tally.answers} results checked\n"
        f"jobs: {outcomes}\nfaults ({sum(tally.faults.values()) / tally.seeds:.0f} a run): {faults}"
    )


if __name__ == "__main__":
    sys.exit(main())
