"""The catalog: every store operation on projections and their manifests, one method each.

What to do, and in which order, is for consolidation.py and pieces.py to say; the catalog knows
where things lie, checks bytes against their digest whenever it reads them, and nothing more.
"""

import contextlib
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa

from caudal.errors import FormatError, NotFoundError, StoreError
from caudal.formats.digest import digest
from caudal.series import layout, rows
from caudal.series import manifest as manifests
from caudal.series.errors import LostFileError
from caudal.series.events import EventLog
from caudal.series.layout import Month
from caudal.series.manifest import ConsolidationManifest, ManifestStatus, ProjectionFile
from caudal.series.parallel import WorkerPool
from caudal.series.transfer import BIG_FILE_BYTES, checked_bytes
from caudal.store.port import Entry, Store, entries, folder_names, key_in, pages


@dataclass
class Placed:
    """What lies in the projections of a month: final files by series, and files in `.tmp/`.

    For an empty folder in `.tmp/` there is a key that removes it when it is deleted.
    """

    finals: dict[str, Entry] = field(default_factory=dict)
    temps: list[tuple[str, str]] = field(default_factory=list)  # (attempt, key)

    @property
    def tags(self) -> dict[str, str]:
        return {code: entry.tag for code, entry in self.finals.items()}

    def outcast(self, newest: ConsolidationManifest) -> list[str]:
        """Series whose final file a completed month does not have, as after a loss of events.

        They must have been listed before `newest` was read. A file that comes to the same place
        meanwhile is then missed by the next run, which puts it back.
        """
        if newest.status is not ManifestStatus.COMPLETED:
            return []
        return sorted(self.finals.keys() - {file.series_code for file in newest.files})

    def add(self, key: layout.ProjectionKey, entry: Entry) -> None:
        if key.attempt:
            self.temps.append((key.attempt, entry.key))
        else:
            self.finals[key.series_code] = entry

    def update(self, other: "Placed") -> None:
        self.finals |= other.finals
        self.temps += other.temps


class Catalog:
    """The projections of all datasets in a store.

    `clock` and `new_id` are given so that tests can decide them; `parallel` is how many files are
    written, moved or deleted at a time. By default 16 on S3, where that is mostly waiting, and 4
    elsewhere: more threads would only take Python from each other.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_id: Callable[[], str] = lambda: secrets.token_hex(8),
        parallel: int | None = None,
        big_file_bytes: int = BIG_FILE_BYTES,
    ) -> None:
        self.store = store
        self.clock = clock
        self.new_id = new_id
        self.workers = WorkerPool(parallel or store.parallel_requests)
        self.big_file_bytes = big_file_bytes
        self._logs: dict[str, EventLog] = {}

    def log(self, dataset_id: str) -> EventLog:
        """The event log of a dataset."""
        if dataset_id not in self._logs:
            self._logs[dataset_id] = EventLog(self.store, dataset_id)
        return self._logs[dataset_id]

    def timestamp(self) -> str:
        """Now, in UTC, as ISO 8601."""
        return self.clock().astimezone(UTC).isoformat(timespec="microseconds")

    # Manifests.

    def read_consolidation_manifest(self, month: Month) -> ConsolidationManifest | None:
        """The newest manifest of a month, or None if there never was one."""
        numbers = self._manifest_numbers(month)
        return self.read_numbered_manifest(month, max(numbers)) if numbers else None

    def read_committed_manifest(
        self, month: Month, newest: ConsolidationManifest | None = None
    ) -> ConsolidationManifest | None:
        """The manifest that readers go by: the newest that is committed or completed."""
        newest = newest or self.read_consolidation_manifest(month)
        if newest is None or newest.status is not ManifestStatus.IN_PROGRESS:
            return newest
        if newest.standing is None:
            return None
        try:
            return self.read_numbered_manifest(month, newest.standing)
        except NotFoundError:  # somebody moved it away, because it was damaged
            return self._committed_below(month, newest.standing)

    def read_numbered_manifest(self, month: Month, number: int) -> ConsolidationManifest:
        """One manifest of a month. FormatError: it cannot be read, or is another one's."""
        key = layout.manifest(month, number)
        try:
            found = manifests.decode(self.store.read(key), ConsolidationManifest, key)
            if (found.of, found.number) != (month, number):
                about = f"{found.dataset_id} {found.of}, number {found.number}"
                raise FormatError(f"{key} is damaged: it is of {about}")
        except FormatError as error:
            raise FormatError(
                f"{error}; restore it from a backup, or move it away: the month is then "
                "consolidated again from its events"
            ) from error
        return found

    def newest_manifest_numbers(self, dataset_id: str) -> dict[Month, int]:
        """For every month the number of its newest manifest, by one listing."""
        newest: dict[Month, int] = {}
        for entry in entries(self.store, layout.consolidation(dataset_id)):
            found = layout.parse_manifest(dataset_id, entry.key)
            if found:
                newest[found[0]] = max(found[1], newest.get(found[0], 0))
        return newest

    def write_consolidation_manifest(self, manifest: ConsolidationManifest) -> None:
        """Create the numbered manifest, then the copy. AlreadyExistsError: the number is taken.

        A copy that cannot be written lags until the next run: nobody goes by it.
        """
        data = manifests.encode(manifest)
        self.store.create(layout.manifest(manifest.of, manifest.number), data)
        with contextlib.suppress(StoreError):
            self.store.replace(layout.manifest_copy(manifest.of), data)

    def refresh_manifest_copy(self, newest: ConsolidationManifest) -> None:
        """Make `manifest.json` the newest again, if a crash or a late writer left an older one."""
        data, key = manifests.encode(newest), layout.manifest_copy(newest.of)
        with contextlib.suppress(NotFoundError, FormatError):
            copy = self.store.read(key)
            if copy == data:
                return
            if manifests.decode(copy, ConsolidationManifest, key).number > newest.number:
                return  # another run went on after we looked
        self.store.replace(key, data)

    def _committed_below(self, month: Month, number: int) -> ConsolidationManifest | None:
        for lower in sorted(self._manifest_numbers(month), reverse=True):
            if lower < number:
                found = self.read_numbered_manifest(month, lower)
                if found.status is not ManifestStatus.IN_PROGRESS:
                    return found
        return None

    def _manifest_numbers(self, month: Month) -> list[int]:
        return [
            found[1]
            for entry in entries(self.store, layout.manifest_folder(month))
            if (found := layout.parse_manifest(month.dataset_id, entry.key))
        ]

    # Projections.

    def write_series_projection_temp(
        self, month: Month, series_code: str, attempt: str, table: pa.Table
    ) -> ProjectionFile:
        """Write a projection to the attempt's `.tmp/`, and read it back to be sure.

        If a power cut takes it after the commit, readers merge events and the next run rebuilds.
        """
        data, key = rows.encode(table), layout.projection_temp(month, series_code, attempt)
        file = ProjectionFile(series_code, table.num_rows, len(data), digest(data))
        self.store.create(key, data, lasting=False)
        if digest(self.store.read(key)) != file.digest:
            raise StoreError(f"{key} does not hold what was just written there: check the store")
        return file

    def move_series_projection_from_temp(
        self, month: Month, file: ProjectionFile, attempt: str
    ) -> ProjectionFile:
        """Put a committed file into its place; what is in place already stays there.

        Gives the file with its tag. Raises LostFileError if it is nowhere with its digest.
        """
        final = layout.projection(month, file.series_code)
        temp = layout.projection_temp(month, file.series_code, attempt)
        with self._checked_bytes(temp, file) as data:
            if data is not None:
                tag = self.store.replace(final, data, twin=temp)
                return msgspec.structs.replace(file, tag=tag)
        # The tag is taken before the bytes are read: if they change in between, the tag is an
        # old one, and the next run looks at the bytes again.
        entry = next((entry for entry in entries(self.store, final) if entry.key == final), None)
        with self._checked_bytes(final, file) as data:
            if entry is None or data is None:
                raise LostFileError(f"{final} is neither in its place nor in .tmp/{attempt}")
        return msgspec.structs.replace(file, tag=entry.tag)

    def read_projection(self, month: Month, file: ProjectionFile, attempt: str) -> pa.Table | None:
        """A committed file's rows: from its final place, else from `.tmp/`; None if nowhere."""
        final = layout.projection(month, file.series_code)
        for key in (final, layout.projection_temp(month, file.series_code, attempt)):
            with contextlib.suppress(NotFoundError):
                data = self.store.read(key)
                if len(data) == file.size and digest(data) == file.digest:
                    return rows.decode(data, key)
        return None

    def is_in_place(self, month: Month, file: ProjectionFile) -> bool:
        """Whether the final file holds the committed bytes."""
        with self._checked_bytes(layout.projection(month, file.series_code), file) as data:
            return data is not None

    def placed(self, dataset_id: str) -> dict[Month, Placed]:
        """All projections of a dataset, final and temporary, by one listing."""
        return self._placed_below(layout.windows(dataset_id), dataset_id)

    def placed_in(self, month: Month) -> Placed:
        """The projections of one month, by a listing for each series."""
        found, dataset_id = Placed(), month.dataset_id
        folders = [layout.projection_folder(month, code) for code in self._codes(dataset_id)]
        for placed in self.workers.each(lambda one: self._placed_below(one, dataset_id), folders):
            found.update(placed.get(month, Placed()))
        return found

    def cleanup_temp_projections(self, month: Month, attempts: Iterable[str] | None = None) -> int:
        """Delete what lies in `.tmp/`: of some attempts, or (None) of all. Gives how many."""
        wanted = None if attempts is None else frozenset(attempts)
        temps = self.placed_in(month).temps
        return self.delete(key for attempt, key in temps if wanted is None or attempt in wanted)

    def delete(self, keys: Iterable[str]) -> int:
        """Delete what no manifest goes by; gives how many. What comes back is swept again."""
        return len(self.workers.each(lambda key: self.store.delete(key, lasting=False), keys))

    def _placed_below(self, prefix: str, dataset_id: str) -> dict[Month, Placed]:
        months: defaultdict[Month, Placed] = defaultdict(Placed)
        for page in pages(self.store, prefix):
            for entry in page.entries:
                if (key := layout.parse_projection(dataset_id, entry.key)) is not None:
                    months[key.month].add(key, entry)
            for folder in page.folders:
                if (empty := layout.parse_empty_temp(dataset_id, folder)) is not None:
                    month, attempt = empty
                    months[month].temps.append((attempt, key_in(folder)))
        return months

    def _codes(self, dataset_id: str) -> list[str]:
        return list(folder_names(self.store, layout.windows(dataset_id)))

    def _checked_bytes(
        self, key: str, file: ProjectionFile
    ) -> contextlib.AbstractContextManager[bytes | Path | None]:
        return checked_bytes(self.store, key, file.size, file.digest, self.big_file_bytes)
