"""One contestant in a process of its own: `python -m bench.child NAME APP FOLDER WARM_FOLDER`.

Prints one JSON object. The clock runs from just before the files are read to the last answer;
imports and compiled kernels are ready by then, since a run over tiny files came before.
"""

import importlib
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.answers import Answers
from bench.machine import peak_bytes


@dataclass(frozen=True)
class Run:
    """What one run took and what it answered."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    answers: Answers


def main(name: str, app: str, folder: Path, warm_folder: Path) -> None:
    contestant = importlib.import_module(f"bench.contestants.with_{name}")
    contestant.answer(app, warm_folder)
    wall, cpu = time.perf_counter(), time.process_time()
    answers = contestant.answer(app, folder)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    run = Run(wall, cpu, peak_bytes(), answers)
    json.dump(asdict(run), sys.stdout, default=float)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
