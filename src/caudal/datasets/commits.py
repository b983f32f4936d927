"""Open a dataset, and commit versions. The few rules that make it correct:

1. A version is one create. It covers all tables. Version n + 1 is created only by somebody who
   read version n, and is decided from the contents at n; whoever loses the create reads the
   winner's version and decides again. So versions are a serial history without a lock.
2. Version n + 1 is created only when the Delta commits of version n exist in all tables. Whoever
   created n may have died before writing them, so each commit first writes those of n: they are a
   pure function of version n (delta.py), and creating the same bytes again does nothing.
3. A version names only files that exist. They are created before it. A vacuum deletes only files
   that its own version lists, and lists none that the contents before it name. So a commit that
   finds its files in the list of a vacuum since its contents were read must not add them: it fails,
   and its caller writes them again, under other names.
4. Checkpoints are derived and may be missing. A damaged one is passed over.
5. Version n is durable before its Delta commits are written by anyone, and before anyone reports
   that it brought something (store/history.py). Otherwise a power cut could remove the version of
   a loader that died, and leave the Delta commits that another one wrote for it.

Every conflict means that another version was committed, so somebody makes progress.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import msgspec

from caudal.datasets import keys
from caudal.datasets.contents import (
    Contents,
    decode_checkpoint,
    encode_checkpoint,
    first_contents,
    follow,
)
from caudal.datasets.delta import delta_commit
from caudal.datasets.documents import (
    DatasetHead,
    DatasetVersion,
    decode_head,
    decode_version,
    encode_head,
    encode_version,
)
from caudal.errors import AlreadyExistsError, FormatError, NotFoundError, StoreError, UsageError
from caudal.store.history import History
from caudal.store.port import Store, entries

CHECKPOINT_EVERY = 100
_MOST_CONFLICTS = 10_000

Decide = Callable[[Contents], DatasetVersion | None]


class VersionNotFoundError(UsageError):
    """The dataset has no such version."""


class FilesVacuumedError(StoreError):
    """A vacuum deleted files that were to be committed: write them again, under other names."""


def find_head(store: Store) -> DatasetHead | None:
    """Return what the dataset in this store is; None if there is no dataset."""
    try:
        return decode_head(store.read(keys.DATASET))
    except NotFoundError:
        return None


def create_dataset(store: Store, head: DatasetHead) -> Contents:
    """Create a dataset, unless there is one. Return its newest contents."""
    try:
        store.create(keys.DATASET, encode_head(head))
    except AlreadyExistsError:
        head = decode_head(store.read(keys.DATASET))
    first = DatasetVersion(0, head.created, "create", head=head)
    store.create(keys.version_key(0), encode_version(first))
    write_logs(store, first, head)
    return open_contents(store)


def open_contents(store: Store, as_of: int | None = None) -> Contents:
    """Return the contents at a version, by default the newest.

    Raises VersionNotFoundError, and NotFoundError if there is no dataset.
    """
    versions, checkpoints = _listed(store)
    newest = max(versions, default=-1)
    if newest < 0:
        raise NotFoundError("there is no dataset")
    number = newest if as_of is None else as_of
    if not 0 <= number <= newest:
        raise VersionNotFoundError(
            f"there is no version {number}: the newest is {newest} (`caudal versions` lists them)"
        )
    base = _nearest(store, [one for one in checkpoints if one <= number])
    after = range(base.number + 1, number + 1)
    return follow(base, _read_versions(store, after))


def newer(store: Store, contents: Contents) -> Contents:
    """Return the contents with all versions that were committed since."""
    found = _versions(store).after(contents.number)
    return follow(contents, found) if found else contents


def read_version(store: Store, number: int) -> DatasetVersion:
    """Return one version. Raises NotFoundError."""
    return _versions(store).read(number)


def settle(store: Store, contents: Contents) -> None:
    """Make the newest version of these contents durable, before something in it is reported."""
    _versions(store).settle(contents.number)


def commit(store: Store, contents: Contents, decide: Decide) -> Contents:
    """Commit the version that `decide` makes of the newest contents; None: nothing is to be done.

    Steps, in this order:
      1. Read the versions that others committed.
      2. Make the newest version durable. Write its Delta commits, which may be missing.
      3. Let `decide` make the next version from those contents.
      4. Create it. If the number is taken, begin again.
      5. Write its Delta commits, and a checkpoint if the last one is far behind.
    """
    history, deleted = _versions(store), set[tuple[str, str]]()
    for _ in range(_MOST_CONFLICTS):
        versions = history.after(contents.number)
        deleted.update(*map(deleted_by, versions))
        contents = follow(contents, versions)
        history.settle(contents.number)
        write_logs(store, history.read(contents.number), contents.head)
        version = decide(contents)
        if version is None:
            return contents
        if deleted & _added_by(version):
            raise FilesVacuumedError("a vacuum deleted files of this load: load again")
        try:
            history.create(version.number, encode_version(version))
        except AlreadyExistsError:
            continue
        contents = follow(contents, [version])
        write_logs(store, version, contents.head)
        return _with_checkpoint(store, contents)
    raise StoreError("other versions were committed again and again: try again later")


def next_version(contents: Contents, now: float) -> tuple[int, int]:
    """Return the number and the time of the next version. Times never go back."""
    return contents.number + 1, max(contents.time, int(now * 1000))


def write_logs(store: Store, version: DatasetVersion, head: DatasetHead) -> None:
    """Write the Delta commits of a version, one in every table."""
    for table in head.tables:
        key, log = keys.delta_key(table.name, version.number), delta_commit(version, table.name)
        try:
            store.create(key, log)
        except AlreadyExistsError:
            if store.read(key) == log:  # a store may not know that the bytes are the same
                continue
            raise FormatError(
                f"{key} differs from version {version.number}: something else wrote to the table; "
                "load into a new dataset"
            ) from None


def _versions(store: Store) -> History[DatasetVersion]:
    return History(store, keys.version_key, decode_version)


def _added_by(version: DatasetVersion) -> set[tuple[str, str]]:
    return {
        (table, file.path)
        for table, changes in version.changes.items()
        for change in changes
        for file in change.add
    }


def deleted_by(version: DatasetVersion) -> set[tuple[str, str]]:
    """Return the (table, path) of the files that a version lets a vacuum delete."""
    files = version.vacuumed.files if version.vacuumed else {}
    return {(table, path) for table, paths in files.items() for path in paths}


def _with_checkpoint(store: Store, contents: Contents) -> Contents:
    if contents.number - contents.checkpoint < CHECKPOINT_EVERY:
        return contents
    contents = msgspec.structs.replace(contents, checkpoint=contents.number)
    with suppress(AlreadyExistsError):  # another version of Caudal wrote it in other bytes
        store.create(keys.checkpoint_key(contents.number), encode_checkpoint(contents))
    _write_delta_checkpoints(store, contents)
    return contents


def _write_delta_checkpoints(store: Store, contents: Contents) -> None:
    from caudal.datasets.delta_checkpoint import delta_checkpoint

    for table in contents.head.tables:
        key = keys.delta_checkpoint_key(table.name, contents.number)
        with suppress(AlreadyExistsError):  # another release of the Parquet library wrote it
            store.create(key, delta_checkpoint(contents, table.name))


def _listed(store: Store) -> tuple[list[int], list[int]]:
    """Return the numbers of all versions and of all checkpoints."""
    versions, checkpoints = [], []
    for entry in entries(store, keys.VERSIONS):
        if (number := keys.version_number(entry.key)) is not None:
            versions.append(number)
        elif (number := keys.checkpoint_number(entry.key)) is not None:
            checkpoints.append(number)
    return versions, checkpoints


def _nearest(store: Store, checkpoints: list[int]) -> Contents:
    """Return the contents of the newest of these checkpoints that is not damaged."""
    for number in sorted(checkpoints, reverse=True):
        try:
            return decode_checkpoint(store.read(keys.checkpoint_key(number)), number)
        except (FormatError, NotFoundError):
            continue
    return first_contents(_existing(store, 0))


def _read_versions(store: Store, numbers: range) -> Iterator[DatasetVersion]:
    if len(numbers) < 2 or store.parallel_requests == 1:
        yield from (_existing(store, number) for number in numbers)
        return
    with ThreadPoolExecutor(store.parallel_requests) as pool:
        yield from pool.map(lambda number: _existing(store, number), numbers)


def _existing(store: Store, number: int) -> DatasetVersion:
    try:
        return read_version(store, number)
    except NotFoundError:
        raise FormatError(
            f"{keys.version_key(number)} is missing although later versions are there: "
            "restore it from a copy of the dataset"
        ) from None
