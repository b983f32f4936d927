"""Run damaged inputs in a child process: python -m tests.fuzz_inputs.run CASES [SEED [FIRST]].

`python -m tests.fuzz_inputs.run 1 SEED CASE` runs one case again. The child is replaced when it
crashes, and every so many cases, so that what it holds at the end says something.
"""

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHILD = ["-m", "tests.fuzz_inputs.child"]
PER_CHILD = 50_000
MOST_FAULTS = 20  # then stop: more of the same help nobody
SILENT_SECONDS = 300.0  # a case that takes so long never ends


@dataclass
class Found:
    """What some cases came to."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    peak_mib: int = 0
    cases: int = 0


def fuzz(cases: int, seed: int, first: int = 0) -> Found:
    """Run the cases from `first` on, or until there are many faults."""
    found = Found()
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "case"
        at, end = first, first + cases
        while at < end and len(found.faults) < MOST_FAULTS:
            at = _run_child(found, seed, at, min(at + PER_CHILD, end), progress)
    found.cases = at - first
    return found


def _run_child(found: Found, seed: int, first: int, end: int, progress: Path) -> int:
    """Run cases in one child; gives the first case that is still to be run."""
    progress.write_bytes((first - 1).to_bytes(8, "little", signed=True))
    command = [sys.executable, "-X", "faulthandler", *CHILD]
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as words:
        child = subprocess.Popen(
            [*command, str(seed), str(first), str(end), str(progress)], stdout=said, stderr=words
        )
        try:
            is_hung = _wait(child, progress)
        finally:
            child.kill()
            child.wait()
        said.seek(0)
        for line in said.read().splitlines():
            _enter(found, seed, json.loads(line))
        if child.returncode == 0:
            return end
        at = int.from_bytes(progress.read_bytes(), "little", signed=True)
        words.seek(0)
        how = "never ends" if is_hung else _ending(child.returncode)
        found.faults.append(f"seed {seed} case {at}: {how}\n{words.read()[-3000:]}")
        return at + 1


def _wait(child: "subprocess.Popen[bytes]", progress: Path) -> bool:
    """Wait for the end of a child; True if it has made no progress for too long."""
    last, since = b"", time.monotonic()
    while True:
        try:
            child.wait(1.0)
        except subprocess.TimeoutExpired:
            now = progress.read_bytes()
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > SILENT_SECONDS:
                return True
        else:
            return False


def _ending(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"exit status {status}"


def _enter(found: Found, seed: int, told: dict[str, Any]) -> None:
    if "counts" in told:
        found.counts.update(told["counts"])
        found.peak_mib = max(found.peak_mib, told["peak_mib"])
    else:
        about = f"seed {seed} case {told['case']} ({told['target']}): {told['error']}"
        found.faults.append(f"{about}\n{told['trace']}")


def main(cases: int, seed: int, first: int) -> int:
    began = time.monotonic()
    found = fuzz(cases, seed, first)
    seconds = time.monotonic() - began
    for fault in found.faults:
        print(fault, flush=True)
    for name in sorted({name.removesuffix(" refused") for name in found.counts}):
        read, refused = found.counts[name], found.counts[f"{name} refused"]
        print(f"  {name:12} {read + refused:8} cases, {refused:8} refused")
    print(
        f"{found.cases} cases in {seconds:.0f} s, {found.cases / seconds:.0f} per second; "
        f"{len(found.faults)} faults; at most {found.peak_mib} MiB held; seed {seed}"
    )
    return 1 if found.faults else 0


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]]
    chosen = given[1] if len(given) > 1 else random.SystemRandom().randrange(1 << 32)
    sys.exit(main(given[0] if given else 10_000, chosen, given[2] if len(given) > 2 else 0))
