"""What an idle cluster costs: `python -m bench.idle`.

A default cluster (three medics, two gateways, two workers, a private broker) is brought up and left
alone. The CPU time of each process, user and system, is read from /proc before and after a minute;
the broker is shown, but is not ours to count. The target is 10% of one core for all of ours.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.acceptance.cluster import running

from caudal.cluster.folder import Cluster
from caudal.process.records import read_record

TARGET_SHARE = 0.10
_BROKER = "broker"
_SETTLE_SECONDS = 15.0
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="idle-") as name, running(Path(name)) as real:
        time.sleep(_SETTLE_SECONDS)
        spent = shares(Cluster.open(real.folder), given.seconds)
    for process, share in spent.items():
        print(f"{process}: {share:.2%} of one core")
    total = sum(share for process, share in spent.items() if process != _BROKER)
    print(f"all but the broker: {total:.2%} of one core, target {TARGET_SHARE:.0%}")
    return int(total > TARGET_SHARE)


def shares(cluster: Cluster, seconds: float) -> dict[str, float]:
    """Of each process, the share of one core that it takes."""
    records = {one.name: read_record(cluster.run_folder, one.name) for one in cluster.here}
    pids = {name: record.pid for name, record in records.items() if record}
    before, began = {name: cpu_seconds(pid) for name, pid in pids.items()}, time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    return {name: (cpu_seconds(pid) - before[name]) / passed for name, pid in pids.items()}


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, from its start."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS


if __name__ == "__main__":
    sys.exit(main())
