"""One measured run: a command from its start to its end, and what it cost whom.

The cluster is brought up by `caudal up` in a folder beside the data (so on the same disk, with
fsync), with one gateway if nothing else is said. Before every run its janitor has removed the jobs
before, so that no run pays for another.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.acceptance.cluster import CAUDAL, RealCluster, running

from bench.cluster.watching import Watch, watching
from bench.datasets import ROOT
from bench.race import ContestantFailedError
from caudal.cluster.folder import Cluster
from caudal.process.records import read_record

CLIENT, BROKER = "client", "broker"
PROJECT = Path(__file__).parents[2]
_SETTLE_SECONDS = 60.0
_LOOK_SECONDS = 0.2
Answer = dict[str, bytes]
Contestant = Callable[[], "Run"]


@dataclass(frozen=True)
class Run:
    """What a command took, what it gave and what it said."""

    seconds: float
    peak_bytes: Mapping[str, int]
    cpu_seconds: Mapping[str, float]
    answers: Answer
    words: str

    @property
    def job(self) -> str:
        """The id of the job that a client ran."""
        return self.words.split()[1]


@dataclass(frozen=True)
class Bench:
    """A cluster to be measured."""

    real: RealCluster
    gateways: int = 1

    @property
    def pids(self) -> dict[str, int]:
        """Who runs, by name."""
        cluster = Cluster.open(self.real.folder)
        records = {one.name: read_record(cluster.run_folder, one.name) for one in cluster.here}
        return {name: record.pid for name, record in records.items() if record}

    @property
    def addresses(self) -> list[str]:
        return [f"http://127.0.0.1:{self.real.port + 1 + n}" for n in range(self.gateways)]

    @property
    def gateway(self) -> list[str]:
        return ["--gateway", ",".join(self.addresses)]

    def submit(self, folder: Path) -> Run:
        """All books queries, from the client's start to its end."""
        return self.run(["submit", "books", "--data", str(folder), *self.gateway])

    def run(self, words: Sequence[str]) -> Run:
        self.settle()
        return measured(caudal(words), self.pids)

    def settle(self) -> None:
        """Wait until nothing of earlier jobs is left to be removed."""
        jobs = self.real.folder / "store" / "jobs"
        deadline = time.monotonic() + _SETTLE_SECONDS
        while any(jobs.glob("*/*/batches/*/*/*")) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)

    def bytes_by_worker(self, job: str) -> dict[str, int]:
        """What each worker read for a job's map tasks, from its log."""
        shares = {}
        for log in sorted((self.real.folder / "logs").glob("worker-*.log")):
            lines = (json.loads(one) for one in log.read_text().splitlines() if one[:1] == "{")
            shares[log.stem] = sum(
                one.get("bytes_in", 0)
                for one in lines
                if one.get("job") == job and one.get("task") == "map"
            )
        return shares


@contextmanager
def cluster(workers: int = 2, gateways: int = 1) -> Iterator[Bench]:
    """A cluster that is up; gone at the end, whatever happens."""
    ROOT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="cluster-", dir=ROOT))
    try:
        words = ["--gateways", str(gateways), "--workers", str(workers)]
        with running(folder, *words) as real:
            yield Bench(real, gateways)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def caudal(words: Sequence[str]) -> list[str]:
    return [*CAUDAL, *words]


def embedded(folder: Path) -> Run:
    """All books queries by the embedded engine, as a process of its own."""
    return measured(caudal(["run", "books", "--data", str(folder)]), {})


def measured(command: Sequence[str], others: Mapping[str, int]) -> Run:
    """Run a command of Caudal to its end; its answers go to files, as JSON."""
    with tempfile.TemporaryDirectory(dir=ROOT, prefix="answers-") as out, watching(others) as watch:
        began, spent = time.perf_counter(), _cpu_of_children()
        words = ended(begun([*command, "--format", "json", "--out", out]), watch)
        seconds, spent = time.perf_counter() - began, _cpu_of_children() - spent
        answers = {path.stem: path.read_bytes() for path in Path(out).iterdir()}
    cpu = {**watch.found.cpu_seconds, CLIENT: spent}
    return Run(seconds, watch.found.peak_bytes, cpu, answers, words)


def _cpu_of_children() -> float:
    """Of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def begun(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str], watch: Watch | None = None) -> str:
    """Wait for a process and give its words; raise if it failed, and end it if we are stopped."""
    if watch is not None:
        watch.pids[CLIENT] = process.pid
    try:
        _, words = process.communicate()
    finally:
        process.kill()
    if process.returncode:
        raise ContestantFailedError(f"{process.args!r} ended with {process.returncode}:\n{words}")
    return words


def in_turn(*contestants: Contestant, repeats: int) -> list[list[Run]]:
    """Everybody once in each round; who begins changes from round to round."""
    runs: list[list[Run]] = [[] for _ in contestants]
    for round_ in range(repeats):
        for turn in range(len(contestants)):
            place = (turn + round_) % len(contestants)
            runs[place].append(contestants[place]())
    return runs


def middle(runs: Sequence[Run]) -> float:
    return median(run.seconds for run in runs)


def middle_cpu(runs: Sequence[Run], name: str | None = None) -> float:
    """CPU seconds of one process, or of all together."""
    return median(
        run.cpu_seconds.get(name, 0.0) if name else sum(run.cpu_seconds.values()) for run in runs
    )


def peak(runs: Sequence[Run], name: str) -> int:
    return max(run.peak_bytes.get(name, 0) for run in runs)


def require_equal(what: str, answers: Answer, expected: Answer) -> None:
    """Answers are compared in bytes."""
    for query, data in expected.items():
        if answers.get(query) != data:
            raise ContestantFailedError(
                f"{what} answers {query} otherwise than the embedded engine"
            )


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
