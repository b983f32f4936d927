"""What an idle cluster costs: `make bench-cluster ONLY=idle`, or `python -m bench.idle`.

A default cluster (three medics, two gateways, two workers) on the embedded broker is brought up and
left alone. The CPU time of each process, user and system, is read from /proc before and after a
minute. The target is 4% of one core for all of them.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from tests.acceptance.cluster import running

from bench.tables import Table, met
from caudal.cluster.folder import Cluster
from caudal.process.records import read_record

TARGET_SHARE = 0.04
_SETTLE_SECONDS = 15.0
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    spent = measured(parser.parse_args().seconds)
    Console().print(table(spent).rich())
    return int(sum(spent.values()) > TARGET_SHARE)


def measure(seconds: float = 60.0) -> list[Table]:
    """For the page of benchmarks."""
    return [table(measured(seconds))]


def measured(seconds: float) -> dict[str, float]:
    """Of each process of an idle cluster, the share of one core that it takes."""
    embedded = ("--broker", "embedded")
    with tempfile.TemporaryDirectory(prefix="idle-") as name, running(Path(name), *embedded) as one:
        time.sleep(_SETTLE_SECONDS)
        return shares(Cluster.open(one.folder), seconds)


def table(spent: Mapping[str, float]) -> Table:
    """Per role, and all."""
    roles: dict[str, list[float]] = {}
    for process, share in spent.items():
        roles.setdefault(process.rpartition("-")[0], []).append(share)
    rows = [[f"{len(found)} {role}s", f"{sum(found):.2%}", "", ""] for role, found in roles.items()]
    total = sum(spent.values())
    rows.append(["all", f"{total:.2%}", f"≤ {TARGET_SHARE:.0%}", met(total <= TARGET_SHARE)])
    return Table("an idle cluster", ["what", "of one core", "target", "met"], rows)


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
