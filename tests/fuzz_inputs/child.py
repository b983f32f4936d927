"""The process in which cases run: python -m tests.fuzz_inputs.child SEED FIRST END PROGRESS.

PROGRESS is a file of eight bytes that always holds the number of the case that is running, so that
a crash names its case. Faults that are no crash are told as lines of JSON.
"""

import json
import mmap
import resource
import struct
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path

from tests.fuzz_inputs.targets import NAMES, run_case

ROOM_BYTES = 512 << 20  # beyond what the process has mapped once everything is loaded


def main(seed: int, first: int, end: int, progress: Path) -> None:
    warnings.simplefilter("ignore")
    for number in range(len(NAMES)):  # load and compile everything before memory is bounded
        _told(seed, number)
    _bound_memory()
    counts = Counter[str]()
    with progress.open("r+b") as file, mmap.mmap(file.fileno(), 8) as place:
        for number in range(first, end):
            struct.pack_into("<q", place, 0, number)
            counts[_told(seed, number)] += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"counts": counts, "peak_mib": peak}), flush=True)


def _told(seed: int, number: int) -> str:
    try:
        return run_case(seed, number)
    except Exception as error:
        fault = {
            "case": number,
            "target": NAMES[number % len(NAMES)],
            "error": f"{type(error).__name__}: {error}"[:300],
            "trace": traceback.format_exc()[-1500:],
        }
        print(json.dumps(fault), flush=True)
        return f"{NAMES[number % len(NAMES)]} FAULT"


def _bound_memory() -> None:
    """A case that wants more than a little memory fails with MemoryError: a fault."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    most = pages * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
