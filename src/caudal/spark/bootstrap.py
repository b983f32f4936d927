"""The function that Spark sends to executors, by value: it needs nothing of Caudal to be loaded.

It finds Caudal on the executor, in a shipped archive or installed, compares its fingerprint with
the driver's, and only then calls a task. If they differ, its only row is an error for the driver.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def task_function(name: str, work: bytes, wanted: Mapping[str, str], archive: str) -> Task:
    """Return the function that runs the task of this name (tasks.py) on an executor."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refusal, tasks = _loaded_tasks(wanted, archive)
        if refusal:
            yield _refused(refusal)
            for _ in batches:  # Spark waits for all of them to be read
                pass
            return
        yield from getattr(tasks, name)(work, batches)
        tasks.settle()

    return run


def _loaded_tasks(wanted: Mapping[str, str], archive: str) -> tuple[str, Any]:
    """Return why the code of this executor cannot be used, if it cannot; and the tasks."""
    import importlib

    _find_shipped(wanted, archive)
    try:
        found = importlib.import_module("caudal.spark.fingerprint").fingerprint()
        differing = [name for name in wanted if found.get(name) != wanted[name]]
        if differing:
            told = ", ".join(f"{name} {found.get(name)} not {wanted[name]}" for name in differing)
            remedy = _remedy(wanted, differing, archive)
            return f"the code of the executors differs ({told}): {remedy}", None
        return "", importlib.import_module("caudal.spark.tasks")
    except ImportError as error:
        remedy = _remedy(wanted, ["caudal"], archive)
        return f"the executors cannot load Caudal ({error}): {remedy}", None


def _remedy(wanted: Mapping[str, str], differing: Sequence[str], archive: str) -> str:
    """Return what to do. An archive does not help against another DuckDB or Arrow: an executor uses
    its own packages first."""
    own = {"duckdb", "pyarrow"} & set(differing)
    packages = sorted(own | ({"caudal"} if set(differing) - own else set()))
    told = " and ".join(f"{name} {wanted[name]}" for name in packages)
    if own:
        why = ", since its own packages come before shipped ones" if archive else ""
        return f"install {told} on every executor{why}"
    return f"install {told} on every executor{'' if archive else ', or add --ship'}"


def _find_shipped(wanted: Mapping[str, str], archive: str) -> None:
    """Put a shipped archive on the path: Caudal first, its packages after those installed. Other
    code that an earlier task of this process has loaded is dropped."""
    import importlib
    import sys

    root = _unpacked(archive) if archive else None
    if root is None or _is_loaded(wanted, f"{root}/caudal/"):
        return
    first, last = f"{root}/caudal", f"{root}/packages"
    sys.path[:] = [first, *(place for place in sys.path if place not in (first, last)), last]
    for name in [name for name in sys.modules if name.partition(".")[0] == "caudal"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def _unpacked(archive: str) -> Any:
    """Return the folder of an archive, as a Path; None if it is not here."""
    from pathlib import Path

    roots = [Path.cwd()]
    try:
        from pyspark import SparkFiles

        roots.append(Path(SparkFiles.getRootDirectory()))
    except Exception:  # no files were sent this way
        pass
    return next((root / archive for root in roots if (root / archive).is_dir()), None)


def _is_loaded(wanted: Mapping[str, str], place: str) -> bool:
    """Return whether Caudal is loaded, from this place or with the wanted code."""
    import importlib
    import sys

    if "caudal" not in sys.modules:
        return False
    if str(getattr(sys.modules["caudal"], "__file__", "")).startswith(place):
        return True
    try:
        return bool(importlib.import_module("caudal.spark.fingerprint").fingerprint() == wanted)
    except ImportError:
        return False


def _refused(reason: str) -> pa.RecordBatch:
    import json
    import secrets

    import pyarrow as arrow

    told = json.dumps(["UsageError", reason]).encode()
    columns = {
        "readers": arrow.array([[]], arrow.list_(arrow.int32())),
        "stage": arrow.array(["!error"], arrow.string()),
        "slice": arrow.array([-1], arrow.int32()),
        "number": arrow.array([secrets.randbits(62)], arrow.int64()),  # other tasks refuse too
        "part": arrow.array([0], arrow.int32()),
        "payload": arrow.array([told], arrow.binary()),
    }
    return arrow.RecordBatch.from_pydict(columns)
