"""One rival in a process of its own.

`python -m bench.cluster_rivals.child NAME FOLDER WARM OUT RUNS` writes one JSON object. The clock
runs from just before the files are read to the last answer; the system is up and has answered three
times over tiny files by then. It answers over the same files so many times, each of which is told:
compilers and allocators get used to such files. So is how long it took to be up, and the most
memory that this process had, without those that it started.
"""

import importlib
import json
import resource
import sys
import time
from pathlib import Path

_WARM_RUNS = 3  # the compiler of a JVM needs more than one


def main(name: str, folder: Path, warm_folder: Path, out: Path, runs: int) -> None:
    began = time.perf_counter()
    rival = importlib.import_module(f"bench.cluster_rivals.with_{name}")
    with rival.opened() as answer:
        started = time.perf_counter() - began
        for _ in range(_WARM_RUNS):
            answer(warm_folder)
        seconds = []
        for _ in range(runs):
            ready = time.perf_counter()
            answers = answer(folder)
            seconds.append(time.perf_counter() - ready)
    told = {
        "start_seconds": started,
        "run_seconds": seconds,
        "answers": answers,
        "own_peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
    out.write_text(json.dumps(told, default=float), encoding="utf-8")


if __name__ == "__main__":
    chosen, folder, warm, out, runs = sys.argv[1:]
    main(chosen, Path(folder), Path(warm), Path(out), int(runs))
