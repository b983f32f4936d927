"""Sweeps shared map outputs that nobody used for long (jobs/shared_maps.py).

Rules
1. A part is unused if its newest mark is older than the setting, and no running job needs it. Both
   this clock and the store's, if it has one, must say so.
2. Marks are listed before jobs are looked at. A job that is created later than that may still lose
   outputs that it has seen. It then computes them again: that costs time, never an answer.
3. Outputs are deleted before the marks that were listed. A mark that came meanwhile stays.
"""

from collections.abc import Iterator

from caudal.datasets.cluster_place import ROOT
from caudal.errors import FormatError, NotFoundError
from caudal.jobs.job_index import running_marks
from caudal.jobs.ports import Ports
from caudal.jobs.runs import read_outcome
from caudal.jobs.shared_maps import dataset_of, is_unused, part_of
from caudal.store.port import Store, entries, folder_names


def sweep_shared(ports: Ports) -> int:
    """Delete the outputs of every unused part; return how many objects were deleted."""
    store, now = ports.store, _now(ports)
    old = [
        (root, part, marks)
        for root in _roots(store)
        for part in {*folder_names(store, f"{root}mapped/"), *folder_names(store, f"{root}used/")}
        if is_unused(_newest(marks := _marks(store, root, part)), now, ports.bounds.unused_seconds)
    ]
    needed = set(_needed(ports)) if old else set()
    deleted = 0
    for root, part, marks in old:
        if (root, part) not in needed:
            outputs = [entry.key for entry in entries(store, f"{root}mapped/{part}/")]
            for key in (*outputs, *marks):
                store.delete(key, lasting=False)
                deleted += 1
    return deleted


def _now(ports: Ports) -> float:
    dated = ports.store.time()
    return ports.clock.now() if dated is None else min(ports.clock.now(), dated)


def _roots(store: Store) -> Iterator[str]:
    """Yield the prefixes of all datasets."""
    for owner in list(folder_names(store, ROOT)):
        for name in list(folder_names(store, f"{ROOT}{owner}/")):
            folder = f"{ROOT}{owner}/{name}/"
            yield from [f"{folder}{one}/" for one in folder_names(store, folder)]


def _marks(store: Store, root: str, part: str) -> list[str]:
    return [entry.key for entry in entries(store, f"{root}used/{part}/")]


def _newest(marks: list[str]) -> int:
    names = [mark.rpartition("/")[2] for mark in marks]
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def _needed(ports: Ports) -> Iterator[tuple[str, str]]:
    """Yield the dataset and the part of every table that a running job reads."""
    for mark in running_marks(ports.store):
        try:
            job_run = ports.job_runs.open(mark.job)
            if job_run is None or (asked := dataset_of(job_run)) is None:
                continue
            if read_outcome(ports.store, job_run.keys) is None:
                yield from ((asked.root, part_of(job_run, one)) for one in job_run.shape.tables)
        except (FormatError, NotFoundError):
            continue
