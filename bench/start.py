"""How long a start takes: `python -m bench.start`, or `make bench ONLY=start`.

Commands take turns, so that a busy machine is busy for all of them. CPU time is user and system
time of the command itself; on a machine that others use it says more than the time on the clock.
"First" is a run that finds nothing that an earlier one left. Processes of a cluster are killed with
-9; they are well again when a medic says so.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from tests.acceptance.cluster import running

from bench import section
from bench.tables import Table
from caudal.cluster import chaos
from caudal.cluster.folder import Cluster
from caudal.cluster.roster import MemberKind

_CAUDAL = Path(sys.executable).with_name("caudal")
_DUCKDB = "import duckdb; duckdb.sql('select 1').fetchall()"
_TITLE = "## Starts\n\n" + " ".join((__doc__ or "").split("\n\n", 1)[1].split())


@dataclass
class Timed:
    """A command, its bar, and what its runs took."""

    name: str
    command: Sequence[str]
    bar: str
    environment: Mapping[str, str] = field(default_factory=dict)
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def run(self) -> None:
        began = time.perf_counter()
        child = subprocess.Popen(
            self.command,
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{self.name} failed with status {child.returncode}")
        self.wall.append(time.perf_counter() - began)
        self.cpu.append(usage.ru_utime + usage.ru_stime)

    def row(self, basis: "Timed") -> list[str]:
        wall = statistics.median(self.wall)
        ratio = wall / statistics.median(basis.wall)
        return [
            self.name,
            f"{wall:.3f}",
            f"{min(self.wall):.3f}",
            f"{statistics.median(self.cpu):.3f}",
            f"{ratio:.1f}",
            self.bar,
        ]


def commands(folder: Path, repeats: int) -> Table:
    """Commands side by side."""
    data = str(folder / "movies")
    subprocess.run(
        [_CAUDAL, "generate", "movies", "--scale", "0.01", "--out", data],
        check=True,
        capture_output=True,
    )
    ask = [str(_CAUDAL), "run", "movies", "--data", data]
    basis = Timed("DuckDB: SELECT 1", [sys.executable, "-c", _DUCKDB], "")
    first = Timed("run movies, first", ask, "second + 0.3 s")
    timed = [
        basis,
        Timed("--version", [str(_CAUDAL), "--version"], "0.08 s"),
        Timed("sql 'SELECT 1'", [str(_CAUDAL), "sql", "SELECT 1"], "2.5 times DuckDB's"),
        first,
        Timed("run movies, second", ask, "0.6 s"),
    ]
    for turn in range(repeats):
        for one in timed:
            if one is first:
                one.environment = {"XDG_CACHE_HOME": str(folder / f"empty-{turn}")}
            one.run()
    return Table(
        title="commands",
        head=("command", "median s", "best s", "CPU s", "times DuckDB's", "bar"),
        rows=[one.row(basis) for one in timed],
    )


def kills(folder: Path, count: int) -> Table:
    """Processes of a small cluster, killed one by one."""
    with running(folder, "--broker", "embedded") as real:
        report = chaos.strike(
            Cluster.open(real.folder),
            chaos.ChaosPlan(
                kills=count, kinds=(MemberKind.WORKER, MemberKind.GATEWAY), several=False, seed=1
            ),
        )
    rows = [
        [kind, str(len(some)), f"{statistics.median(some):.2f}", f"{max(some):.2f}", "1.0 s"]
        for (kind, _), some in sorted(report.seconds.items())
    ]
    return Table("well again after a kill", ("process", "kills", "median s", "most s", "bar"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--write", type=Path, help="the page that holds the figures")
    given = parser.parse_args()
    began = section.load()
    with tempfile.TemporaryDirectory(prefix="start-") as name:
        tables = [commands(Path(name), given.repeats)]
        if given.kills:
            tables.append(kills(Path(name) / "cluster", given.kills))
    for table in tables:
        Console().print(table.rich())
    if given.write is not None:
        section.write(given.write, "start", section.measured(_TITLE, "bench.start", began, tables))


if __name__ == "__main__":
    main()
