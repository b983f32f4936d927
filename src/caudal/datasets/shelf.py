"""Find, open and check the dataset at a place: a folder or a URL. Messages for people are here."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from caudal.datasets import commits, vacuum
from caudal.datasets.contents import Contents
from caudal.datasets.documents import DatasetHead
from caudal.datasets.misplaced import found_instead
from caudal.errors import NotFoundError, UsageError
from caudal.store.open_store import folder_of, open_store
from caudal.store.port import Store


@dataclass(frozen=True)
class Shelf:
    """A dataset that is open. `place` is how the user named it."""

    place: str
    store: Store
    contents: Contents

    @property
    def folder(self) -> Path | None:
        """Return the local folder of the dataset; None if it lies elsewhere."""
        return folder_of(self.place)


@contextmanager
def place_to_load(place: str) -> Iterator[Store]:
    """Yield the store at a place. A folder that does not exist is made.

    If the load fails before it has stored anything, the new folder is removed again.
    """
    folder = folder_of(place)
    is_new = folder is not None and not folder.exists()
    try:
        yield open_store(place)
    except BaseException:
        if is_new and folder is not None:
            with suppress(OSError):  # it is not empty
                folder.rmdir()
        raise


def open_shelf(place: str, as_of: int | None = None, store: Store | None = None) -> Shelf:
    """Open an existing dataset at a version, by default the newest."""
    if store is None:
        folder = folder_of(place)
        if folder is not None and not folder.is_dir():
            raise _no_dataset(place)
        store = open_store(place)
    try:
        newest = commits.open_contents(store)
    except NotFoundError:
        raise _no_dataset(place) from None
    if as_of is None or as_of == newest.number:
        return Shelf(place, store, newest)
    contents = commits.open_contents(store, as_of)
    gone = vacuum.vacuum_of(store, contents, newest)
    if gone is not None:
        raise UsageError(
            f"version {as_of} of {place} was vacuumed: the oldest version that is sure to be "
            f"there is {gone.oldest}"
        )
    return Shelf(place, store, contents)


def require_same(
    place: str,
    head: DatasetHead,
    app_name: str,
    cleanings: Mapping[str, str],
    option: str = "--to",
) -> None:
    """Raise UsageError unless the dataset holds exactly the tables of an application.

    `cleanings` are the digests of how the application cleans its tables, by name. `option` is that
    of `caudal load` for another dataset.
    """
    reload_all = (
        f"load all files into a new dataset (caudal load {app_name} --data DIR {option} NEW)"
    )
    held = {table.name: table.cleaning for table in head.tables if table.cleaning}
    if head.application != app_name:
        raise UsageError(
            f"{place} holds a dataset of {head.application}, not of {app_name}: "
            f"load into another one ({option} NEW), or ask it with {head.application}"
        )
    for name, cleaning in cleanings.items():
        if name not in held:
            raise UsageError(f"{place} has no table {name}: {reload_all}")
        if cleaning != held[name]:
            raise UsageError(
                f"the SQL or the columns of table {name} changed since {place} was made, and old "
                f"and new rows must not mix: {reload_all}, or undo the change"
            )
    for name in held:
        if name not in cleanings:
            raise UsageError(
                f"{place} has a table {name}, which {app_name} has no more: {reload_all}"
            )


def _no_dataset(place: str) -> UsageError:
    folder = folder_of(place)
    instead = found_instead(folder) if folder is not None else ""
    make = f"make one with `caudal load APP --to {place}`"
    return UsageError(f"there is no dataset in {place}: {instead or make}")
