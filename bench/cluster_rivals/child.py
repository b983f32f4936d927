"""One rival in a process of its own: `python -m bench.cluster_rivals.child NAME FOLDER WARM OUT`.

Writes one JSON object. The clock runs from just before the files are read to the last answer; the
system is up and has answered three times over tiny files by then. Then it answers over the same
files again, which is told apart: compilers and allocators have seen such files by then. So is how
long it took to be up, and the most memory that this process had, without those that it started.
"""

import importlib
import json
import resource
import sys
import time
from pathlib import Path

_WARM_RUNS = 3  # the compiler of a JVM needs more than one


def main(name: str, folder: Path, warm_folder: Path, out: Path) -> None:
    began = time.perf_counter()
    rival = importlib.import_module(f"bench.cluster_rivals.with_{name}")
    with rival.opened() as answer:
        started = time.perf_counter() - began
        for _ in range(_WARM_RUNS):
            answer(warm_folder)
        ready = time.perf_counter()
        answers = answer(folder)
        ended = time.perf_counter()
        answer(folder)
        again = time.perf_counter() - ended
    told = {
        "start_seconds": started,
        "wall_seconds": ended - ready,
        "again_seconds": again,
        "answers": answers,
        "own_peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
    out.write_text(json.dumps(told, default=float), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:5]))
