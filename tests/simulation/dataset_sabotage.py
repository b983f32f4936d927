"""Ways to break datasets and their shared map outputs on purpose. Each must be caught."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from unittest import mock

import msgspec

from caudal.datasets import commits, vacuum
from caudal.datasets.contents import Contents
from caudal.datasets.delta import delta_commit
from caudal.datasets.documents import DatasetVersion, StoredFile
from caudal.datasets.files import create_file
from caudal.datasets.parquet import stored_file
from caudal.datasets.sources import Offered, Skipped, Sorted
from caudal.formats.digest import digest
from caudal.formats.keys import Task
from caudal.jobs import execute, reconcile, shared_maps
from caudal.jobs.runs import JobRun
from caudal.store.port import Entry
from tests.simulation import dataset_world
from tests.simulation.invariants import ViolationError

Patch = Callable[[], contextlib.AbstractContextManager[Any]]


def version_without_its_file() -> Any:
    """A version names a file that is not there: it is committed before its files are written."""

    def lazily(store: Any, table: str, folder: str, name: str, rows: Any) -> StoredFile:
        if name.endswith("00000001"):
            return stored_file(f"{folder}/{name}.parquet", rows)[0]
        return create_file(store, table, folder, name, rows)

    return mock.patch.object(dataset_world, "create_file", lazily)


def log_that_differs() -> Any:
    """A Delta log differs from its version: it has the time of who writes it."""

    def late(version: DatasetVersion, table: str) -> bytes:
        return delta_commit(msgspec.structs.replace(version, time=version.time + 1), table)

    return mock.patch.object(commits, "delta_commit", late)


def key_without_versions() -> Any:
    """The key of a shared output leaves out all versions."""

    def part_of(job_run: JobRun, table: str) -> str:
        split = job_run.split
        return digest(msgspec.json.encode((split.table(table), split.plan.tables[table])))

    return mock.patch.object(shared_maps, "part_of", part_of)


def vacuum_that_is_too_eager() -> Any:
    """A vacuum deletes files that the newest version needs."""

    def plan(
        contents: Contents, found: Sequence[Entry], removed: object, before: float
    ) -> dict[str, tuple[str, ...]]:
        del found, removed, before
        return {table: (files[-1].path,) for table, files in contents.tables.items() if files}

    return mock.patch.object(vacuum, "plan_vacuum", plan)


def file_under_two_names() -> Any:
    """A source is known by its name, so the same file is loaded under two names."""

    def by_name(contents: Contents, offered: Sequence[Offered], **_: object) -> Sorted:
        known = {held.name for held in contents.sources}
        new = [one for one in offered if one.name not in known]
        skipped = [Skipped(one, "it was loaded") for one in offered if one.name in known]
        return Sorted(tuple(new), tuple(skipped))

    def still(contents: Contents, sources: Sequence[Offered]) -> list[bool]:
        known = {held.name for held in contents.sources}
        return [one.name not in known for one in sources]

    return _both(
        mock.patch.object(dataset_world, "sort_sources", by_name),
        mock.patch.object(dataset_world, "still_new", still),
    )


def workers_of_any_version() -> Any:
    """A worker of another level computes outputs of a job all the same."""
    return mock.patch.object(execute, "require_fit", return_value=None)


def swept_outputs_stay_lost() -> Any:
    """A map output that was swept after its merge is not made again."""
    return mock.patch.object(reconcile, "_missing_maps", _unless_merged)


def _unless_merged(table: str, group: int, shape: Any, facts: Any) -> Iterator[Any]:
    missing = [number for number in facts.batches(table, group)
               if number not in facts.mapped(table, group)]  # fmt: skip
    if group not in facts.merged(table):
        yield from (Task("map", table, group * shape.group + one) for one in missing)


def outputs_by_number() -> Any:
    """The key of a shared output has the number of a batch in place of the files' digest."""

    def key(store: Any, job_run: JobRun, table: str, number: int) -> str:
        del store
        return f"{shared_maps._folder(job_run, table)}{number:032}"

    return mock.patch.object(shared_maps, "shared_key", key)


@contextlib.contextmanager
def _both(*patches: contextlib.AbstractContextManager[Any]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield


# By name: how to break it, and a seed that catches it.
DATASET_SABOTAGES: dict[str, tuple[Patch, int]] = {
    "a version that names a file that is not there": (version_without_its_file, 0),
    "a Delta log that differs from its version": (log_that_differs, 0),
    "a key that leaves all versions out": (key_without_versions, 47),
    "a vacuum that is too eager": (vacuum_that_is_too_eager, 3),
    "the same file loaded under two names": (file_under_two_names, 3),
    "workers of any version compute all tasks": (workers_of_any_version, 19),
    "swept outputs stay lost": (swept_outputs_stay_lost, 1),
    "outputs are shared by number": (outputs_by_number, 0),
}


def first_dataset_catch(name: str, seeds: Iterable[int]) -> tuple[int, str] | None:
    """The first of these seeds that catches it, and how it shows."""
    for seed in seeds:
        with DATASET_SABOTAGES[name][0]():
            try:
                dataset_world.simulate_dataset(seed)
            except ViolationError as error:
                return seed, str(error).splitlines()[-1]
    return None


if __name__ == "__main__":
    for one in DATASET_SABOTAGES:
        print(one, "|", first_dataset_catch(one, range(40)), flush=True)
