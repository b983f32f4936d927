"""Tiny jobs: how long one takes alone, and how many a second twenty clients get answered.

All clients are threads of this process, over a book list of a few kilobytes and one query, so the
time is that of requests, tasks and looks. There are two gateways, and every client knows both; who
served how many jobs is what their metrics say.
"""

import itertools
import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

import httpx

from bench.cluster.runs import Bench, cluster
from bench.cluster.whole import warm
from bench.datasets import dataset
from bench.tables import Table, met
from caudal.client.client import Client

TINY = 0.0001  # a scale
ALONE_SECONDS, EACH_SECOND, CLIENTS, GATEWAYS = 0.120, 25, 20, 2
_SECONDS, _WARM_SECONDS = 15.0, 2.0
_QUERY = "q2"
_CREATED = re.compile(
    r'^caudal_gateway_requests_total\{method="PUT",path="/jobs/\{job}",status="201"} (\S+)', re.M
)


def measure(repeats: int) -> list[Table]:
    folder = dataset("books", TINY)
    with cluster(gateways=GATEWAYS) as bench:
        warm(bench)
        _together(bench, folder, _WARM_SECONDS)  # each gateway has planned the query
        counts = [_served(bench)]
        alone = _alone(bench, folder, 10 * repeats)
        counts.append(_served(bench))
        together = _together(bench, folder, _SECONDS)
        counts.append(_served(bench))
    quick, each = median(alone) <= ALONE_SECONDS, len(together) / _SECONDS
    rows = [
        [
            "one client",
            *_times(alone),
            "",
            _shares(*counts[:2]),
            f"≤ {ALONE_SECONDS:g} s",
            met(quick),
        ],
        [
            f"{CLIENTS} clients",
            *_times(together),
            f"{each:.1f}",
            _shares(*counts[1:]),
            f"≥ {EACH_SECOND} a second",
            met(each >= EACH_SECOND),
        ],
    ]
    head = ["who", "median s", "95% s", "jobs a second", "jobs of each gateway", "target", "met"]
    return [Table("tiny jobs", head, rows)]


def _times(seconds: Sequence[float]) -> list[str]:
    return [f"{median(seconds):.3f}", f"{quantiles(seconds, n=20)[-1]:.3f}"]


def _shares(before: Sequence[int], after: Sequence[int]) -> str:
    return ", ".join(str(now - then) for then, now in zip(before, after, strict=True))


def _served(bench: Bench) -> list[int]:
    """How many jobs each gateway has created."""
    texts = [httpx.get(f"{one}/metrics").text for one in bench.addresses]
    return [sum(int(float(count)) for count in _CREATED.findall(text)) for text in texts]


def _alone(bench: Bench, folder: Path, jobs: int) -> list[float]:
    with Client(bench.addresses) as client:
        return [_seconds(client, folder) for _ in range(jobs)]


def _together(bench: Bench, folder: Path, seconds: float) -> list[float]:
    """The times of all jobs that were answered within the time."""
    found: list[float] = []
    end = time.perf_counter() + seconds

    def ask() -> None:
        with Client(bench.addresses) as client:
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
