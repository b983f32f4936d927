"""A job with five pages open, beside the same job with none."""

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.cluster.runs import (
    PROJECT,
    Bench,
    Run,
    begun,
    caudal,
    cluster,
    ended,
    in_turn,
    middle,
    middle_cpu,
    require_equal,
)
from bench.cluster.watching import watching
from bench.cluster.whole import warm
from bench.datasets import ROOT, dataset, total_bytes, warm_page_cache
from bench.tables import Table, met

PAGES = 5
TARGET = 1.03


def measure(scale: float, repeats: int) -> list[Table]:
    folder = dataset("books", scale)
    warm_page_cache(folder)
    with cluster() as bench:
        warm(bench)
        gateway = next(name for name in bench.pids if name.startswith("gateway"))
        none, five = in_turn(
            partial(_submitted, bench, folder, 0),
            partial(_submitted, bench, folder, PAGES),
            repeats=repeats,
        )
    for run in five:
        require_equal("with pages", run.answers, none[0].answers)
    took, spent = middle(five) / middle(none), middle_cpu(five) / middle_cpu(none)
    rows = [_row("none", none, gateway), _row(f"{PAGES}", five, gateway)]
    rows.append(["ratio", f"{took:.3f}", f"{spent:.3f}", "", f"≤ {TARGET}", met(took <= TARGET)])
    head = ["open pages", "median s", "CPU s of the cluster", "of the gateway", "target", "met"]
    return [Table(f"a job of {total_bytes(folder) / 1e6:,.0f} MB that is looked at", head, rows)]


def _row(name: str, runs: list[Run], gateway: str) -> list[str]:
    cpu = middle_cpu(runs), middle_cpu(runs, gateway)
    return [name, f"{middle(runs):.2f}", f"{cpu[0]:.2f}", f"{cpu[1]:.2f}", "", ""]


def _submitted(bench: Bench, folder: Path, pages: int) -> Run:
    """A job from its client's start to its end. Pages are opened once it has its id."""
    bench.settle()
    words = ["submit", "books", "--data", str(folder), *bench.gateway, "--format", "json"]
    with (
        tempfile.TemporaryDirectory(dir=ROOT, prefix="answers-") as out,
        _opened(bench.gateway[1], pages) as show,
        watching(bench.pids) as watch,
    ):
        began = time.perf_counter()
        process = begun(caudal([*words, "--out", out]))
        assert process.stderr is not None
        job = process.stderr.readline().split()[1]
        show(job)
        told = ended(process)
        seconds = time.perf_counter() - began
        answers = {path.stem: path.read_bytes() for path in Path(out).iterdir()}
    return Run(seconds, watch.found.peak_bytes, watch.found.cpu_seconds, answers, told)


@contextlib.contextmanager
def _opened(url: str, pages: int) -> Iterator[Callable[[str], None]]:
    """Yield what shows a job on so many pages."""
    if not pages:
        yield lambda _: None
        return
    words = [sys.executable, "-m", "bench.cluster.page_clients", url, str(pages)]
    process = subprocess.Popen(
        words,
        cwd=PROJECT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdout.readline()
        stdin = process.stdin

        def show(job: str) -> None:
            print(job, file=stdin, flush=True)

        yield show
    finally:
        process.kill()
        process.wait()
