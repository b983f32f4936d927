"""The event log: numbered versions. The create of its manifest commits a version.

Rules:

1. Version numbers have no gaps: 1, 2, 3, ... A part is written before the manifest that lists it,
   under a name of its own. So a part that no manifest lists was never added.
2. The manifest of a version contains, for every month of the log, the versions that changed it and
   a fingerprint of their content. So one read of the newest manifest shows which months are stale.
3. In the folder of a committed version, a part that the manifest does not list can never be
   listed: any process may delete it. In the folder of a number that is not committed yet, a
   running ingest may still need it: no other process deletes it. It is deleted after that number
   is taken.
4. A manifest that can be read may not be durable yet. A process that builds on it (a next version,
   a projection, or the answer that all is known) settles it first (store/history.py). So a power
   cut never removes a version that something was built on, or that was promised.
5. All parts of a version have the name of one attempt. So a version can only have unlisted parts
   if several attempts left parts in its folder. The sweep reads only the manifests of such
   versions.
"""

from collections.abc import Iterable
from threading import Lock

import pyarrow as pa

from caudal.errors import FormatError, NotFoundError, StoreError
from caudal.formats.digest import digest
from caudal.series import layout, manifest, rows
from caudal.series.config import SeriesConfig
from caudal.series.errors import ChangedConfigError
from caudal.series.layout import Month
from caudal.series.manifest import NO_INPUTS, MonthInputs, MonthPart, VersionManifest
from caudal.series.merging import merge
from caudal.store.history import History
from caudal.store.port import Store, folder_names, key_in, pages


class EventLog:
    """The versions of one dataset. Manifests never change, so each is read once."""

    def __init__(self, store: Store, dataset_id: str) -> None:
        self._store = store
        self.dataset_id = dataset_id
        self._manifests: dict[int, VersionManifest] = {}
        self._history = History(
            store, lambda number: layout.version_manifest(dataset_id, number), self._decoded
        )
        self._head = 0
        self._lock = Lock()

    def head(self) -> VersionManifest | None:
        """Return the newest version, or None before the first. Asks the store every time."""
        with self._lock:
            if not self._head:
                self._head = self._find_head()
            for found in self._history.after(self._head):
                self._head = found.version
                self._manifests[found.version] = found
            return self.version(self._head) if self._head else None

    def version(self, number: int) -> VersionManifest:
        """Return the manifest of a version. Raise NotFoundError if it is not committed."""
        if number not in self._manifests:
            self._manifests[number] = self._history.read(number)
        return self._manifests[number]

    def inputs(self, month: Month) -> MonthInputs:
        """Return the versions of the log that changed a month, as of now."""
        head = self.head()
        return head.months.get(str(month), NO_INPUTS) if head else NO_INPUTS

    def months(self) -> dict[Month, MonthInputs]:
        """Return every month of the log, in order, with the versions that changed it."""
        head = self.head()
        months = head.months if head else {}
        return {Month.parse(self.dataset_id, text): months[text] for text in sorted(months)}

    def events(self, month: Month, versions: Iterable[int]) -> list[pa.Table]:
        """Return the rows that these versions added to a month, checked against their digests."""
        return [
            self._rows(part)
            for version in versions
            for part in self.version(version).parts
            if part.month == str(month)
        ]

    def merged(self, month: Month, versions: Iterable[int]) -> pa.Table:
        """Return what these versions say about a month: the newest row of every primary key."""
        return merge(self.events(month, versions), self.primary_keys)

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """Return the columns that identify an observation. Version 1 decides for all."""
        try:
            return self.version(1).primary_keys
        except NotFoundError:
            return rows.PRIMARY_KEYS

    def require_same(self, config: SeriesConfig) -> None:
        """Raise ChangedConfigError if the dataset was started with another timezone or key.

        In another timezone every day is another moment, so all known observations would be added
        again. With another key, old and new versions would be merged by different rules.
        """
        head = self.head()
        if head is None:
            return
        if head.timezone not in ("", config.timezone):
            raise _changed(config, f"timezone {head.timezone}", config.timezone)
        if set(self.primary_keys) != set(config.primary_keys):
            before, now = list(self.primary_keys), list(config.primary_keys)
            raise _changed(config, f"primary_keys {before}", f"{now}")

    def write_part(self, month: Month, version: int, attempt: str, table: pa.Table) -> MonthPart:
        """Store rows as a part of a version that is not committed yet."""
        data, key = rows.encode(table), layout.part(month, version, attempt)
        self._store.create(key, data)
        return MonthPart(str(month), key, table.num_rows, len(data), digest(data))

    def commit(self, version: VersionManifest) -> None:
        """Create the manifest of a version.

        Raises AlreadyExistsError if another ingest took the number.
        """
        self.settle(version.version - 1)
        self._history.create(version.version, manifest.encode(version))

    def settle(self, version: int) -> None:
        """Make a committed version durable before anything builds on it (rule 4)."""
        if version:
            self._history.settle(version)

    def sweep(self, first_version: int = 1) -> int:
        """Delete parts that no manifest lists, in committed versions from `first_version` on.

        Empty folders are removed too.
        """
        head = self.head()
        untidy = self._untidy(first_version)
        return sum(self._sweep(one) for one in sorted(untidy) if head and one <= head.version)

    def _untidy(self, first_version: int) -> set[int]:
        """Return versions with parts of several attempts (rule 5), or with empty folders."""
        prefix = layout.events(self.dataset_id)
        if first_version > 1:
            prefix = layout.version_folder(self.dataset_id, first_version)
        untidy, attempts = set[int](), dict[int, str]()
        for page in pages(self._store, prefix):
            for entry in page.entries:
                part = layout.parse_part(entry.key)
                if part and attempts.setdefault(part.version, part.attempt) != part.attempt:
                    untidy.add(part.version)
            untidy.update(filter(None, map(layout.version_above, page.folders)))
        return untidy

    def _sweep(self, version: int) -> int:
        listed = {part.key for part in self.version(version).parts}
        swept = 0
        for page in pages(self._store, layout.version_folder(self.dataset_id, version)):
            parts = (entry.key for entry in page.entries if layout.parse_part(entry.key))
            for key in (*parts, *map(key_in, page.folders)):
                if key not in listed:
                    self._store.delete(key)
                    swept += 1
        return swept

    def _decoded(self, data: bytes, number: int) -> VersionManifest:
        key = layout.version_manifest(self.dataset_id, number)
        try:
            found = manifest.decode(data, VersionManifest, key)
            if (found.dataset_id, found.version) != (self.dataset_id, number):
                about = f"{found.dataset_id}, version {found.version}"
                raise FormatError(f"{key} is damaged: it belongs to {about}")
        except FormatError as error:
            raise FormatError(f"{error}; restore it from a backup") from error
        return found

    def _rows(self, part: MonthPart) -> pa.Table:
        try:
            data = self._store.read(part.key)
        except NotFoundError as error:
            raise StoreError(
                f"{part.key} is lost, but a committed version lists it: restore it from a backup"
            ) from error
        if digest(data) != part.digest:
            raise FormatError(
                f"{part.key} is damaged: its bytes are not those that were committed; "
                "restore it from a backup"
            )
        return rows.decode(data, part.key)

    def _find_head(self) -> int:
        """Return the highest committed number. Only the next number can already have a folder."""
        numbers = self._numbers()
        while numbers and not self._exists(max(numbers)):
            numbers.remove(max(numbers))
        return max(numbers, default=0)

    def _numbers(self) -> set[int]:
        names = folder_names(self._store, layout.events(self.dataset_id))
        return {int(name) for name in names if layout.is_version(name)}

    def _exists(self, version: int) -> bool:
        try:
            self.version(version)
        except NotFoundError:
            return False
        return True


def _changed(config: SeriesConfig, before: str, now: str) -> ChangedConfigError:
    return ChangedConfigError(
        f"{config.dataset_id} was started with {before}, but the config says {now}: "
        "change it back, or use another dataset_id"
    )
