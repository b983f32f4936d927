"""Tiny jobs: how long one takes alone, and how many a second twenty clients get answered.

All clients are threads of this process, over a book list of a few kilobytes and one query, so the
time is that of requests, tasks and looks.
"""

import itertools
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

from bench.cluster.runs import Bench, cluster
from bench.cluster.whole import warm
from bench.datasets import dataset
from bench.tables import Table, met
from caudal.client.client import Client

TINY = 0.0001  # a scale
ALONE_SECONDS, EACH_SECOND, CLIENTS = 0.120, 25, 20
_SECONDS = 15.0
_QUERY = "q2"


def measure(repeats: int) -> list[Table]:
    folder = dataset("books", TINY)
    with cluster() as bench:
        warm(bench)
        alone = _alone(bench, folder, 10 * repeats)
        together = _together(bench, folder)
    quick, each = median(alone) <= ALONE_SECONDS, len(together) / _SECONDS
    rows = [
        ["one client", *_times(alone), "", f"≤ {ALONE_SECONDS:g} s", met(quick)],
        [
            f"{CLIENTS} clients",
            *_times(together),
            f"{each:.1f}",
            f"≥ {EACH_SECOND} a second",
            met(each >= EACH_SECOND),
        ],
    ]
    head = ["who", "median s", "95% s", "jobs a second", "target", "met"]
    return [Table("tiny jobs", head, rows)]


def _times(seconds: Sequence[float]) -> list[str]:
    return [f"{median(seconds):.3f}", f"{quantiles(seconds, n=20)[-1]:.3f}"]


def _alone(bench: Bench, folder: Path, jobs: int) -> list[float]:
    with Client(bench.gateway[1]) as client:
        return [_seconds(client, folder) for _ in range(jobs)]


def _together(bench: Bench, folder: Path) -> list[float]:
    """The times of all jobs that were answered within the time."""
    found: list[float] = []
    end = time.perf_counter() + _SECONDS

    def ask() -> None:
        with Client(bench.gateway[1]) as client:
            for _ in itertools.count():
                took = _seconds(client, folder)
                if time.perf_counter() > end:
                    return
                found.append(took)

    threads = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _seconds(client: Client, folder: Path) -> float:
    began = time.perf_counter()
    client.run("books", folder, _QUERY)
    return time.perf_counter() - began
