"""Vacuum: delete files that no kept version needs.

Rules
1. Kept are all versions that were the newest at some moment since `now - keep`. A compaction is the
   only version that removes files, so a file is needed unless a compaction at or before the oldest
   kept version removed it. Files that no version names belong to loads and compactions that were
   killed, or that run right now.
2. Nothing younger than the longest job (`grace`) is deleted, and nothing that was removed more
   recently: somebody may be about to commit the one, and be reading the other.
3. The files to delete are listed in a version of their own before any is deleted. So nobody commits
   a file that is about to disappear, whatever the clocks say (commits.py, rule 3), and a reader of
   an old version learns that its files are gone.
4. Versions are never deleted: they say what was loaded.
5. No clock alone deletes early. `now` is at most a minute later than the store's clock, if it has
   one. A version dates from when its committer said, or from when the store got it if that is more
   than a minute later. So a copy of a dataset keeps everything for `keep` after it was made.
6. Values of computed columns that no question will read again are deleted too (computed.py). They
   are no files of a version, so they are not listed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from caudal.datasets import keys
from caudal.datasets.commits import commit, deleted_by, next_version, open_contents, read_version
from caudal.datasets.computed import useless
from caudal.datasets.contents import Contents
from caudal.datasets.documents import DatasetVersion, Vacuumed
from caudal.store.port import Entry, Store, entries

LONGEST_JOB_SECONDS = 3_600.0
_CLOCKS_DIFFER_SECONDS = 60.0  # less is the time that the store took


@dataclass(frozen=True)
class VacuumReport:
    """What a vacuum did."""

    contents: Contents
    files: int
    bytes: int


def oldest_kept(contents: Contents, since: float, stored: Mapping[int, float]) -> int:
    """Return the oldest version that was the newest one at some moment since then.

    `stored` says when the store got each version; 0 if it does not know.
    """

    def began(number: int, time: int) -> float:
        later = stored.get(number, 0.0)
        return later if later > time / 1000 + _CLOCKS_DIFFER_SECONDS else time / 1000

    old = (one.number for one in contents.history if began(one.number, one.time) <= since)
    return max(old, default=0)


def plan_vacuum(
    contents: Contents,
    found: Iterable[Entry],
    removed_later: Iterable[tuple[str, str]],
    before: float,
) -> dict[str, tuple[str, ...]]:
    """Return the files to delete by table.

    `found` are the Parquet files in the store, `removed_later` those that a compaction after the
    oldest kept version removed. Files younger than `before` stay.
    """
    needed = {(table, file.path) for table, files in contents.tables.items() for file in files}
    needed.update(removed_later)
    plan: dict[str, list[str]] = {}
    for entry in found:
        table, _, path = entry.key.removeprefix(keys.TABLES).partition("/")
        is_ours = keys.is_file_path(path) and table in contents.tables
        if is_ours and (table, path) not in needed and entry.modified <= before:
            plan.setdefault(table, []).append(path)
    return {table: tuple(paths) for table, paths in plan.items()}


def vacuum(
    store: Store, now: float, keep: float, grace: float = LONGEST_JOB_SECONDS
) -> VacuumReport:
    """Delete what no version of the last `keep` seconds needs; first commit the list of it."""
    contents = open_contents(store)
    found = [one for one in entries(store, keys.TABLES) if one.key.endswith(".parquet")]
    clock = store.time()
    before = (now if clock is None else clock) - grace
    now = now if clock is None else min(now, clock + _CLOCKS_DIFFER_SECONDS)

    def decide(newest: Contents) -> DatasetVersion | None:
        oldest = oldest_kept(newest, now - max(keep, grace), _stored(store, newest))
        files = plan_vacuum(newest, found, _removed_after(store, newest, oldest), before)
        if not files:
            return None
        number, time = next_version(newest, now)
        return DatasetVersion(number, time, "vacuum", vacuumed=Vacuumed(oldest, files))

    after = commit(store, contents, decide)
    deleted = _listed_since(store, contents, after)
    for key in deleted:
        store.delete(key, lasting=False)
    _forget_progress(store, after, before)
    for entry in useless(list(entries(store, keys.COMPUTED)), after, before):
        store.delete(entry.key, lasting=False)
    store.sweep(grace)
    sizes = {one.key: one.size for one in found}
    return VacuumReport(after, len(deleted), sum(sizes.get(key, 0) for key in deleted))


def vacuum_of(store: Store, old: Contents, newest: Contents) -> Vacuumed | None:
    """Return the vacuum that deleted files of an old version; None if all of them are there."""
    paths = {(table, file.path) for table, files in old.tables.items() for file in files}
    for one in newest.history:
        if one.kind == "vacuum" and one.number > old.number:
            version = read_version(store, one.number)
            if deleted_by(version) & paths:
                return version.vacuumed
    return None


def _stored(store: Store, contents: Contents) -> dict[int, float]:
    """Return when the store got each version."""
    dates = {entry.key: entry.modified for entry in entries(store, keys.VERSIONS)}
    return {one.number: dates.get(keys.version_key(one.number), 0.0) for one in contents.history}


def _removed_after(store: Store, contents: Contents, oldest: int) -> list[tuple[str, str]]:
    versions = [
        read_version(store, one.number)
        for one in contents.history
        if one.kind == "compact" and one.number > oldest
    ]
    return [
        (table, path)
        for version in versions
        for table, changes in version.changes.items()
        for change in changes
        for path in change.remove
    ]


def _listed_since(store: Store, before: Contents, after: Contents) -> list[str]:
    """Return the keys that the vacuums since `before` list: ours, and those of others."""
    vacuums = [one for one in after.history[before.number + 1 :] if one.kind == "vacuum"]
    listed = [pair for one in vacuums for pair in deleted_by(read_version(store, one.number))]
    return [keys.file_key(table, path) for table, path in sorted(listed)]


def _forget_progress(store: Store, contents: Contents, before: float) -> None:
    """Delete the progress of loads that have a version, or that nobody went on with for long."""
    committed = {one.load for one in contents.history}
    for entry in list(entries(store, keys.LOADS)):
        load = entry.key.removeprefix(keys.LOADS).partition("/")[0]
        if load in committed or entry.modified <= before:
            store.delete(entry.key, lasting=False)
