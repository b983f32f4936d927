"""The cluster beside PySpark and Dask: the same queries, the same files, the same kernels."""

import json
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from bench.answers import Answers, require_same
from bench.cluster.runs import CLIENT, PROJECT, Run, begun, cluster, ended, in_turn, middle, peak
from bench.cluster.watching import watching
from bench.cluster.whole import warm
from bench.datasets import dataset, total_bytes, warm_page_cache
from bench.race import WARM_SCALE
from bench.tables import Table, met

PYTHON = PROJECT / ".venv-rivals" / "bin" / "python"
NAMES = {
    "pyspark": "PySpark, local[2]",
    "dask": "Dask, two processes",
    "dask_cut": "Dask, cut and read by hand",
}
HEAD = (
    "system", "median s", "start-up s", "peak MB", "with start-up", "cluster / it", "target", "met",
)  # fmt: skip
_NEEDS = {"pyspark": ("pyspark", "java"), "dask": ("dask", ""), "dask_cut": ("dask", "")}


@dataclass(frozen=True)
class Told:
    """What a rival says of its own run (bench/cluster_rivals/child.py)."""

    start_seconds: float
    run_seconds: list[float]  # of each run over the same files
    answers: Answers
    own_peak_bytes: int  # of the process that asks, without those that it started


def measure(scale: float, repeats: int) -> list[Table]:
    folder = dataset("books", scale)
    absent = {name: reason for name in NAMES if (reason := _absence(name))}
    present = [name for name in NAMES if name not in absent]
    told: dict[str, list[Told]] = {name: [] for name in present}
    with cluster() as bench:
        warm(bench)
        warm_page_cache(folder)
        ours, *theirs = in_turn(
            partial(bench.submit, folder),
            *(partial(run_rival, name, folder, told[name]) for name in present),
            repeats=repeats,
        )
    expected = {query: _rows(data) for query, data in ours[0].answers.items()}
    for name in present:
        for one in told[name]:
            require_same(name, one.answers, "the cluster", expected)
    rows = [
        ["Caudal's cluster", f"{middle(ours):.2f}", "", _megabytes(_all_of(ours)), "", "", "", ""]
    ]
    for name, runs in zip(present, theirs, strict=True):
        rows.append(_row(name, runs, told[name], middle(ours)))
    rows += [[NAMES[name], reason, "", "", "", "", "< 1", ""] for name, reason in absent.items()]
    return [
        Table(
            f"books, scale {scale:g}: {total_bytes(folder) / 1e6:,.0f} MB of CSV",
            [
                "system",
                "median s",
                "start-up s",
                "peak MB",
                "with start-up",
                "cluster / it",
                "target",
                "met",
            ],
            rows,
        )
    ]


def _row(name: str, runs: list[Run], told: list[Told], ours: float) -> list[str]:
    theirs = median(one.run_seconds[0] for one in told)
    started = median(one.start_seconds for one in told)
    return [
        NAMES[name],
        f"{theirs:.2f}",
        f"{started:.2f}",
        _megabytes(peak(runs, CLIENT)),
        f"{ours / (started + theirs):.2f}",
        f"{ours / theirs:.2f}",
        "< 1",
        met(ours < theirs),
    ]


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.0f}"


def _all_of(runs: list[Run]) -> int:
    """The peaks of all processes of the cluster and its client, added."""
    return max(sum(run.peak_bytes.values()) for run in runs)


def run_rival(
    name: str,
    folder: Path,
    told: list[Told],
    python: Path = PYTHON,
    warm_scale: float = WARM_SCALE,
    runs: int = 1,
) -> Run:
    """Run one rival in a process of its own, so many times; append what it tells."""
    words = ["-m", "bench.cluster_rivals.child", name, str(folder)]
    with tempfile.TemporaryDirectory() as place, watching({}) as watch:
        out = Path(place) / "answers.json"
        began = time.perf_counter()
        words += [str(dataset("books", warm_scale)), str(out), str(runs)]
        said = ended(begun([str(python), *words]), watch)
        seconds = time.perf_counter() - began
        told.append(Told(**json.loads(out.read_bytes())))
    return Run(seconds, watch.found.peak_bytes, {}, {}, said)


def _rows(data: bytes) -> list[dict[str, object]]:
    return list(json.loads(data))


def _absence(name: str) -> str:
    """Why a rival cannot run here, or nothing."""
    package, program = _NEEDS[name]
    if not PYTHON.exists():
        return "not installed: make .venv/rivals"
    found = subprocess.run([PYTHON, "-c", f"import {package}"], capture_output=True, check=False)
    if found.returncode:
        return f"{package} is not installed"
    if program and shutil.which(program) is None:
        return f"there is no {program} here"
    return ""
