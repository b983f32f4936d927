"""The requests of clients about datasets, besides those of jobs that load or ask them.

Rules
1. A gateway keeps no state: every request reads the store.
2. Who may not read a dataset gets the same answer as if it did not exist. Only its owner loads into
   it, shares it and deletes it; an admin may read and delete any.
"""

from collections.abc import Iterator

from caudal.datasets.cluster_place import (
    ClusterDataset,
    DatasetNotFoundError,
    datasets_of,
    locate,
    shared_with,
)
from caudal.datasets.commits import settle
from caudal.datasets.contents import Contents
from caudal.datasets.keys import REJECTS
from caudal.datasets.stream_parts import parts_of
from caudal.datasets.tables import text_of
from caudal.errors import NotFoundError
from caudal.formats.dataset_replies import (
    DatasetEntry,
    DatasetPage,
    DatasetTables,
    LoadedPart,
    PartPage,
    VersionEntry,
    VersionPage,
)
from caudal.formats.job import Request
from caudal.formats.loads import LoadOffer
from caudal.jobs.load_requests import check_load, offer_load
from caudal.jobs.ports import Ports
from caudal.jobs.requests import check_request, check_sentiment


class DatasetService:
    """Serves requests about datasets. `who` is the owner that asks, `owner` whose dataset it is."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def offer(self, who: str, name: str, request: Request) -> LoadOffer:
        """Say which sources are new, and which job loads them."""
        check_request(request)
        check_load(request)
        check_sentiment(request, self._ports.bounds.sentiments)
        if not request.load or request.load.dataset != name:
            raise DatasetNotFoundError(f"the request loads nothing into {name}")
        return offer_load(self._ports.store, who, request)

    def listing(self, who: str, owner: str) -> DatasetPage:
        """Return the datasets of an owner, then a bounded number of those that others share."""
        store = self._ports.store
        shared = shared_with(store, owner)
        found = [*datasets_of(store, owner), *shared.listed]
        listed = tuple(one for place in found for one in self._entries(place, who))
        return DatasetPage(listed, shared.more)

    def one(self, who: str, owner: str, name: str, *, is_admin: bool = False) -> DatasetEntry:
        place = self._readable(who, owner, name, is_admin=is_admin)
        for entry in self._entries(place, who):
            return entry
        raise _none(name)

    def versions(
        self, who: str, owner: str, name: str, last: int, *, is_admin: bool = False
    ) -> VersionPage:
        """Return the newest `last` versions."""
        contents = self._opened(self._readable(who, owner, name, is_admin=is_admin))
        return VersionPage(
            tuple(
                VersionEntry(
                    *(one.number, one.time, one.kind, one.load),
                    *(one.rows, one.files, one.bytes, one.rejected, one.sources),
                )
                for one in contents.history[-last:]
            )
        )

    def tables(self, who: str, owner: str, name: str, *, is_admin: bool = False) -> DatasetTables:
        """Return the tables of the newest version, and the text of their application."""
        contents = self._opened(self._readable(who, owner, name, is_admin=is_admin))
        columns = {table: dict(types) for table, types in contents.columns.items()}
        return DatasetTables(contents.number, text_of(contents.head), columns)

    def parts(self, who: str, name: str, table: str) -> PartPage:
        """Return the parts of streams in a table; none if the dataset is not made yet."""
        place = locate(self._ports.store, who, name)
        try:
            contents = place.contents()
        except NotFoundError:
            return PartPage(())
        settle(place.below, contents)
        return PartPage(
            tuple(
                LoadedPart(one.version, one.bytes, one.digest, one.part)
                for one in parts_of(contents, table)
                if one.part is not None
            )
        )

    def is_shared(self, who: str, name: str, reader: str) -> bool:
        """Return whether another owner may read a dataset already."""
        return self._readable(who, who, name).may_read(reader)

    def share(self, who: str, name: str, reader: str) -> DatasetEntry:
        """Let another owner read a dataset."""
        self._readable(who, who, name).share(reader)
        return self.one(who, who, name)

    def unshare(self, who: str, name: str, reader: str) -> DatasetEntry:
        self._readable(who, who, name).unshare(reader)
        return self.one(who, who, name)

    def delete(self, who: str, owner: str, name: str, *, is_admin: bool = False) -> DatasetEntry:
        """Delete a dataset; return what it was."""
        place = self._readable(who, owner, name, is_admin=is_admin)
        if who != owner and not is_admin:
            raise _none(name)
        entry = self.one(who, owner, name, is_admin=is_admin)
        place.delete()
        return entry

    def _readable(
        self, who: str, owner: str, name: str, *, is_admin: bool = False
    ) -> ClusterDataset:
        place = locate(self._ports.store, owner, name)
        if not (is_admin or place.may_read(who)) or not place.exists():
            raise _none(name)
        return place

    def _opened(self, place: ClusterDataset) -> Contents:
        try:
            return place.contents()
        except NotFoundError:  # its maker died half-way
            raise _none(place.name) from None

    def _entries(self, place: ClusterDataset, who: str) -> Iterator[DatasetEntry]:
        """Yield what a dataset is; nothing if it is gone, or only half made."""
        try:
            contents = place.contents()
        except NotFoundError:
            return
        rows = {table: sum(file.rows for file in files) for table, files in contents.tables.items()}
        yield DatasetEntry(
            place.owner,
            place.name,
            contents.head.application,
            contents.number,
            sum(count for table, count in rows.items() if table != REJECTS),
            sum(file.bytes for files in contents.tables.values() for file in files),
            rows,
            tuple(place.readers()) if who == place.owner else (),
            who == place.owner,
        )


def _none(name: str) -> DatasetNotFoundError:
    return DatasetNotFoundError(f"there is no dataset {name} that you may use so")
