"""Datasets of a cluster: where they lie in its store, and who may read them.

    datasets/{owner}/{name}/{generation:06}/…             the dataset, laid out as everywhere
    datasets/{owner}/{name}/{generation:06}/readers/{R}   the owner R may read it
    datasets/{owner}/{name}/{generation:06}.deleted       that generation was deleted
    shared/{R}/{owner}/{name}/{generation:06}             index: what R may read

Rules
1. An owner is the name in a token's line. A dataset belongs to the owner that made it.
2. Deleting is one create, of `.deleted`. A dataset of the same name is then another generation, so
   a load that was frozen meanwhile cannot write into the new one. Objects of deleted generations
   are swept, at any time, by anyone.
3. `readers/` decides who may read. The index below `shared/` only helps to list, may be behind, and
   is checked against `readers/`.
4. What is shared is bounded, for it costs its readers: each dataset in a list takes several
   requests to the store. Bounds are counted, not locked, so requests at the same moment pass them
   by a few, and so does a gateway of the previous version. A list is bounded in any case, and takes
   datasets of all owners in turn, so that no owner hides those of others.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest

from caudal.datasets import commits
from caudal.datasets.contents import Contents
from caudal.errors import NotFoundError, UsageError
from caudal.store.below import StoreBelow
from caudal.store.port import Store, entries, folder_names, pages

ROOT = "datasets/"
SHARED = "shared/"
MOST_READERS = 100  # of one dataset: a dataset's entry names them all
MOST_SHARED = 100  # datasets that one owner shares with one other
MOST_LISTED = 100  # datasets of others in one list: about 400 requests to the store

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")  # of owners, too (formats/tokens.py)
_GENERATION = re.compile(r"(\d{6})(/|\.deleted)\Z")
_DELETED = ".deleted"
_MARK = b"{}"


@dataclass(frozen=True)
class SharedDatasets:
    """The datasets of others that an owner may read, as far as they are listed (rule 4)."""

    listed: tuple["ClusterDataset", ...]  # ordered by owner and name
    more: bool  # whether others were left out; who knows their names may use them


class DatasetNotFoundError(NotFoundError):
    """There is no such dataset, or it is not for who asked."""


@dataclass(frozen=True)
class ClusterDataset:
    """A dataset of a cluster, which may not be made yet."""

    store: Store  # the cluster's
    owner: str
    name: str
    generation: int = 0

    @property
    def root(self) -> str:
        """Return the prefix of its objects; it ends with `/`."""
        return f"{_folder(self.owner, self.name)}{self.generation:06}/"

    @cached_property
    def below(self) -> Store:
        """Return the store of its objects, as `caudal.datasets.commits` takes it."""
        return StoreBelow(self.store, self.root)

    def exists(self) -> bool:
        return commits.find_head(self.below) is not None

    def contents(self, as_of: int | None = None) -> Contents:
        """Return the contents at a version, by default the newest.

        Raises NotFoundError if there is no dataset, VersionNotFoundError.
        """
        return commits.open_contents(self.below, as_of)

    def may_read(self, who: str) -> bool:
        """Return whether an owner may read it: its own, or one that was shared with it."""
        return who == self.owner or _exists(self.below, f"readers/{_checked(who)}")

    def readers(self) -> list[str]:
        """Return the other owners that may read it."""
        return [one.key.removeprefix("readers/") for one in entries(self.below, "readers/")]

    def share(self, reader: str) -> None:
        """Let another owner read it. Raise UsageError if too much is shared already (rule 4)."""
        if reader == self.owner:
            raise UsageError(f"{reader} owns {self.name} and reads it anyway")
        if not self.may_read(reader):
            self._check_bounds(reader)
        self.below.create(f"readers/{_checked(reader)}", _MARK)
        self.store.create(self._index(reader), _MARK)

    def unshare(self, reader: str) -> bool:
        """Let another owner read it no more; return whether it could."""
        could = self.may_read(reader)
        self.below.delete(f"readers/{_checked(reader)}")
        self.store.delete(self._index(reader))
        return could

    def delete(self) -> None:
        """Delete it, then its objects (rule 2)."""
        self.store.create(f"{self.root[:-1]}{_DELETED}", _MARK)
        sweep_deleted(self.store, self.owner, self.name)

    def sweep(self) -> int:
        """Delete its objects and what the index says of it; return how many objects it had."""
        for reader in self.readers():
            self.store.delete(self._index(reader))  # first: afterwards nobody knows the readers
        found = list(entries(self.below, ""))
        for entry in found:
            self.below.delete(entry.key, lasting=False)
        return len(found)

    def _check_bounds(self, reader: str) -> None:
        if len(self.below.list("readers/").entries) >= MOST_READERS:
            raise UsageError(
                f"{self.name} has {MOST_READERS} readers, and no more are possible: unshare it "
                "from one of them first"
            )
        if len(self.store.list(f"{SHARED}{reader}/{self.owner}/").entries) >= MOST_SHARED:
            raise UsageError(
                f"you share {MOST_SHARED} datasets with {reader}, and no more are possible: "
                "unshare one of them first"
            )

    def _index(self, reader: str) -> str:
        return f"{SHARED}{reader}/{self.owner}/{self.name}/{self.generation:06}"


def locate(store: Store, owner: str, name: str) -> ClusterDataset:
    """Return where the dataset of this name is, or would be made."""
    _checked(owner)
    check_dataset_name(name)
    deleted = [one for one, is_deleted in _generations(store, owner, name) if is_deleted]
    return ClusterDataset(store, owner, name, max(deleted, default=-1) + 1)


def find(store: Store, who: str, place: str) -> ClusterDataset:
    """Return the dataset that an owner calls so: NAME of its own, or OWNER/NAME of another.

    Raises DatasetNotFoundError, with the same words whether it is not there or not for this owner.
    """
    owner, name = split_place(who, place)
    found = locate(store, owner, name)
    if not found.may_read(who) or not found.exists():
        raise DatasetNotFoundError(f"there is no dataset {place} that you may read")
    return found


def split_place(who: str, place: str) -> tuple[str, str]:
    """Return the owner and the name of a dataset, from NAME or OWNER/NAME.

    >>> split_place("ana", "shelf"), split_place("ana", "ben/shelf")
    (('ana', 'shelf'), ('ben', 'shelf'))
    """
    owner, slash, name = place.rpartition("/")
    check_dataset_name(name)
    return (_checked(owner) if slash else who), name


def check_dataset_name(name: str) -> str:
    if not _NAME.match(name):
        raise UsageError(
            f"{name[:70]!r} cannot be the name of a dataset: up to 64 letters, digits, _ . and -"
        )
    return name


def datasets_of(store: Store, owner: str) -> Iterator[ClusterDataset]:
    """Yield the datasets of an owner, ordered by name."""
    for name in folder_names(store, f"{ROOT}{_checked(owner)}/"):
        found = locate(store, owner, name)
        if found.exists():
            yield found


def shared_with(store: Store, reader: str) -> SharedDatasets:
    """Return the datasets of others that an owner may read, at most MOST_LISTED of them."""
    folder = f"{SHARED}{_checked(reader)}/"
    owners = store.list(folder, recursive=False).folders[: MOST_LISTED + 1]
    indexed = [[one.key for one in store.list(owner).entries] for owner in owners]
    in_turn = [key for key in chain.from_iterable(zip_longest(*indexed)) if key is not None]
    found = (_indexed(store, reader, key) for key in sorted(in_turn[:MOST_LISTED]))
    listed = tuple(one for one in found if one is not None)
    return SharedDatasets(listed, len(in_turn) > MOST_LISTED)


def _indexed(store: Store, reader: str, key: str) -> ClusterDataset | None:
    """Return the dataset that a key of the index names; None if the reader may not read it."""
    _, _, owner, name, generation = key.split("/")
    found = locate(store, owner, name)
    if found.generation != int(generation) or not found.may_read(reader):
        return None
    return found


def is_deleted(store: Store, root: str) -> bool:
    """Return whether the dataset with this root was deleted."""
    return _exists(store, f"{root[:-1]}{_DELETED}")


def sweep_deleted(store: Store, owner: str, name: str) -> int:
    """Delete the objects of deleted generations; return how many there were."""
    found = list(_generations(store, owner, name))
    gone = [one for one, is_deleted in found if is_deleted]
    left = [one for one, is_deleted in found if not is_deleted and one in gone]
    return sum(ClusterDataset(store, owner, name, generation).sweep() for generation in left)


def sweep_all_deleted(store: Store) -> int:
    """Delete the objects of all deleted generations, also of loads that went on too late."""
    return sum(
        sweep_deleted(store, owner, name)
        for owner in list(folder_names(store, ROOT))
        for name in list(folder_names(store, f"{ROOT}{owner}/"))
    )


def _generations(store: Store, owner: str, name: str) -> Iterator[tuple[int, bool]]:
    """Yield the generations: those with a folder, and those that were deleted."""
    folder = _folder(owner, name)
    for page in pages(store, folder, recursive=False):
        for path in [*page.folders, *(entry.key for entry in page.entries)]:
            if (known := _GENERATION.match(path.removeprefix(folder))) is not None:
                yield int(known[1]), known[2] == _DELETED


def _folder(owner: str, name: str) -> str:
    return f"{ROOT}{owner}/{name}/"


def _checked(owner: str) -> str:
    if not _NAME.match(owner):
        raise UsageError(f"{owner[:70]!r} cannot be the name of an owner")
    return owner


def _exists(store: Store, key: str) -> bool:
    try:
        store.read(key, 0, 1)
    except NotFoundError:
        return False
    return True
