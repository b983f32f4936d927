"""Does a memory limit hold? `python -m bench.memory --scale 1 --limit 1GB`.

A process of its own runs the embedded engine under the limit and says what it held at its peak.
"""

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench.datasets import dataset, total_bytes
from bench.machine import peak_bytes
from caudal.application import find_application
from caudal.embedded.engine import run
from caudal.files.sources import Sources
from caudal.run_options import RunOptions
from caudal.sizes import parse_bytes

APP = "books"
TARGET_BYTES = int(1.5e9)
_CHILD = "--child"
_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Peak:
    """The most memory that a run under a limit held resident."""

    scale: float
    limit: str
    csv_bytes: int
    peak_bytes: int
    seconds: float

    def sentence(self) -> str:
        verdict = "under" if self.peak_bytes < TARGET_BYTES else "NOT under"
        return (
            f"`caudal run {APP} --memory-limit {self.limit}` at scale {self.scale:g} "
            f"({self.csv_bytes / 1e6:,.0f} MB of CSV): peak resident memory "
            f"{self.peak_bytes / 1e6:,.0f} MB, {verdict} the target of "
            f"{TARGET_BYTES / 1e6:,.0f} MB, in {self.seconds:.1f} s."
        )


def measure(scale: float, limit: str) -> Peak:
    """Run all queries of the books application in a fresh process."""
    folder = dataset(APP, scale)
    command = [sys.executable, "-m", "bench.memory", _CHILD, str(folder), limit]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True)
    peak, seconds = done.stdout.split()
    return Peak(scale, limit, total_bytes(folder), int(peak), float(seconds))


def _child(folder: Path, limit: str) -> None:
    began = time.perf_counter()
    run(find_application(APP), Sources(folder), options=RunOptions(memory_limit=parse_bytes(limit)))
    print(peak_bytes(), time.perf_counter() - began)


def main() -> None:
    if sys.argv[1:2] == [_CHILD]:
        _child(Path(sys.argv[2]), sys.argv[3])
        return
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--limit", default="1GB")
    chosen = parser.parse_args()
    print(measure(chosen.scale, chosen.limit).sentence())


if __name__ == "__main__":
    main()
