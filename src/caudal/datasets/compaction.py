"""Compaction: many small files become few large ones. Rows, their order and answers stay.

A run of consecutive files of a table is replaced by one file with their rows. The plan is pure. The
commit is a version that removes the run and adds the file; if another compaction replaced a file of
the run meanwhile, the plan is dropped, and its file is left for a vacuum.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from caudal.datasets.commits import FilesVacuumedError, commit, next_version, open_contents
from caudal.datasets.contents import Contents, HeldFile, last_vacuum
from caudal.datasets.documents import DatasetVersion, StoredFile, TableChange
from caudal.datasets.files import create_file, read_file
from caudal.datasets.parquet import read_rows
from caudal.errors import FormatError, StoreError
from caudal.formats.digest import digest
from caudal.store.port import Store
from caudal.version import __version__

TARGET_BYTES = 64 << 20
_ATTEMPTS = 3
TARGET_ROWS = 4_000_000  # bounds the memory of rows that compress well


@dataclass(frozen=True)
class Run:
    """Consecutive files of a table, to become one."""

    table: str
    files: tuple[HeldFile, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


def plan_compaction(contents: Contents, target_bytes: int = TARGET_BYTES) -> list[Run]:
    """Return the runs to merge: as many files as fit the target, two at least."""
    return [
        Run(table, run)
        for table, files in contents.tables.items()
        for run in _runs(files, target_bytes)
        if len(run) > 1
    ]


def _runs(files: Sequence[HeldFile], target_bytes: int) -> Iterator[tuple[HeldFile, ...]]:
    run: list[HeldFile] = []
    for file in files:
        bytes_after = sum(one.bytes for one in run) + file.bytes
        rows_after = sum(one.rows for one in run) + file.rows
        if run and (bytes_after > target_bytes or rows_after > TARGET_ROWS):
            yield tuple(run)
            run = []
        run.append(file)
    if run:
        yield tuple(run)


def compact(
    store: Store,
    now: float,
    target_bytes: int = TARGET_BYTES,
    between: Callable[[], None] = lambda: None,
) -> Contents:
    """Merge small files, and commit one version if there was anything to merge.

    `between` is called before each merge; it may raise an error to stop.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _compact(store, now, target_bytes, between)
        except FilesVacuumedError:
            continue
    raise StoreError("vacuums delete the merged files again and again: try again later")


def _compact(store: Store, now: float, target_bytes: int, between: Callable[[], None]) -> Contents:
    contents = open_contents(store)
    runs = plan_compaction(contents, target_bytes)
    if not runs:
        return contents
    folder = _merge_id(contents, runs)
    merged = []
    for place, run in enumerate(runs):
        between()
        merged.append((run, _merge(store, folder, place, run)))

    def decide(newest: Contents) -> DatasetVersion | None:
        changes = compaction_changes(newest, merged)
        if not changes:
            return None
        number, time = next_version(newest, now)
        return DatasetVersion(number, time, "compact", folder, changes=changes)

    return commit(store, contents, decide)


def compaction_changes(
    contents: Contents, merged: Sequence[tuple[Run, StoredFile]]
) -> dict[str, tuple[TableChange, ...]]:
    """Return what to commit: the runs whose files are all still there, one behind the other."""
    changes: dict[str, tuple[TableChange, ...]] = {}
    for run, file in merged:
        held = [one.path for one in contents.tables[run.table]]
        paths = [one.path for one in run.files]
        start = held.index(paths[0]) if paths[0] in held else len(held)
        if held[start : start + len(paths)] == paths:
            change = TableChange((file,), tuple(paths))
            changes[run.table] = (*changes.get(run.table, ()), change)
    return changes


def _merge(store: Store, folder: str, place: int, run: Run) -> StoredFile:
    rows = read_rows(read_file(store, run.table, file) for file in run.files)
    if rows.num_rows != run.rows:
        raise FormatError(
            f"files of table {run.table} hold {rows.num_rows} rows, not the {run.rows} that "
            "their versions state: restore them from a copy of the dataset"
        )
    return create_file(store, run.table, folder, f"{place:08}", rows)


def _merge_id(contents: Contents, runs: Sequence[Run]) -> str:
    """Return a name for the merged files: derived from what is merged, as that of a load."""
    files = [[run.table, *(file.path for file in run.files)] for run in runs]
    text = msgspec.json.encode([files, last_vacuum(contents), pa.__version__, __version__])
    return f"merged-{digest(text)}"
