"""The catalog: every store operation on projections and their manifests, one method each.

consolidation.py and reading.py decide what to do and in which order. The catalog only knows the
keys, and checks bytes against their digest whenever it reads them.
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

from caudal.errors import AlreadyExistsError, FormatError, NotFoundError, StoreError
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

_MOST_ROUNDS = 100


@dataclass
class Placed:
    """The files in the projections of a month: final files by series, and files in `.tmp/`.

    An empty folder in `.tmp/` is represented by a key. Deleting that key removes the folder.
    """

    finals: dict[str, Entry] = field(default_factory=dict)
    temps: list[tuple[str, str]] = field(default_factory=list)  # (attempt, key)

    @property
    def tags(self) -> dict[str, str]:
        return {code: entry.tag for code, entry in self.finals.items()}

    def outcast(self, newest: ConsolidationManifest) -> list[str]:
        """Return the series with a final file that a completed month does not list.

        Such files are left over after a loss of events. The files must have been listed before
        `newest` was read. If a new file with the same key is written meanwhile, it is deleted too.
        The next run finds it missing and restores it.
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

    `clock` and `new_id` are parameters so that tests can control them. `parallel` is the number of
    files that are written, moved or deleted at a time. The default is 16 on S3, where threads
    mostly wait, and 4 elsewhere, where more threads would only compete for the interpreter lock.
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
        """Return the event log of a dataset."""
        if dataset_id not in self._logs:
            self._logs[dataset_id] = EventLog(self.store, dataset_id)
        return self._logs[dataset_id]

    def timestamp(self) -> str:
        """Return the current time in UTC as ISO 8601."""
        return self.clock().astimezone(UTC).isoformat(timespec="microseconds")

    # Manifests.

    def read_consolidation_manifest(self, month: Month) -> ConsolidationManifest | None:
        """Return the newest manifest of a month, or None if there is none."""
        for _ in range(_MOST_ROUNDS):
            numbers = self._manifest_numbers(month)
            if not numbers:
                return None
            with contextlib.suppress(NotFoundError):  # there are newer ones, and a vacuum ran
                return self.read_numbered_manifest(month, max(numbers))
        raise StoreError(f"{month}: manifests disappear again and again: try again later")

    def read_committed_manifest(
        self, month: Month, newest: ConsolidationManifest | None = None
    ) -> ConsolidationManifest | None:
        """Return the manifest that readers use: the newest that is committed or completed."""
        newest = newest or self.read_consolidation_manifest(month)
        if newest is None or newest.status is not ManifestStatus.IN_PROGRESS:
            return newest
        if newest.standing is None:
            return None
        try:
            return self.read_numbered_manifest(month, newest.standing)
        except NotFoundError:
            again = self.read_consolidation_manifest(month)
            if again is not None and again.number > newest.number:  # and a vacuum ran
                return self.read_committed_manifest(month, again)
            # It was damaged, and a person moved it away.
            return self._committed_below(month, newest.standing)

    def read_numbered_manifest(self, month: Month, number: int) -> ConsolidationManifest:
        """Return one manifest of a month.

        Raises FormatError if it cannot be decoded, or belongs to another month or number.
        """
        key = layout.manifest(month, number)
        try:
            found = manifests.decode(self.store.read(key), ConsolidationManifest, key)
            if (found.of, found.number) != (month, number):
                about = f"{found.dataset_id} {found.of}, number {found.number}"
                raise FormatError(f"{key} is damaged: it belongs to {about}")
        except FormatError as error:
            raise FormatError(
                f"{error}; restore it from a backup, or move it away: the month is then "
                "consolidated again from its events"
            ) from error
        return found

    def newest_manifest_numbers(self, dataset_id: str) -> dict[Month, int]:
        """Return the number of the newest manifest of every month, from one listing."""
        found = self.numbered_manifests(dataset_id)
        return {month: max(numbers) for month, numbers in found.items()}

    def write_consolidation_manifest(
        self, manifest: ConsolidationManifest, before: ConsolidationManifest | None
    ) -> None:
        """Create the numbered manifest, then the copy `manifest.json`.

        `before` is the manifest that it follows. Raises AlreadyExistsError if the number is taken,
        or was taken once. If the copy cannot be written, it stays old until the next run; no
        reader relies on it.
        """
        data, key = manifests.encode(manifest), layout.manifest(manifest.of, manifest.number)
        self.store.create(key, data)
        if not self.follows(manifest.of, before):
            raise AlreadyExistsError(f"a vacuum deleted the first {key}")
        with contextlib.suppress(StoreError):
            self.store.replace(layout.manifest_copy(manifest.of), data)

    def follows(self, month: Month, before: ConsolidationManifest | None) -> bool:
        """Return whether a manifest that was just created behind another one counts (vacuum.py)."""
        if before is None:
            return self._manifest_numbers(month) == [1]
        try:
            return self.read_numbered_manifest(month, before.number) == before
        except NotFoundError:
            return False

    def numbered_manifests(self, dataset_id: str) -> dict[Month, dict[int, Entry]]:
        """Return the entries of all numbered manifests, from one listing."""
        found: defaultdict[Month, dict[int, Entry]] = defaultdict(dict)
        for entry in entries(self.store, layout.consolidation(dataset_id)):
            if numbered := layout.parse_manifest(dataset_id, entry.key):
                found[numbered[0]][numbered[1]] = entry
        return found

    def refresh_manifest_copy(self, newest: ConsolidationManifest) -> None:
        """Update the copy `manifest.json` if a crash or a late writer left an older one."""
        data, key = manifests.encode(newest), layout.manifest_copy(newest.of)
        with contextlib.suppress(NotFoundError, FormatError):
            copy = self.store.read(key)
            if copy == data:
                return
            if manifests.decode(copy, ConsolidationManifest, key).number > newest.number:
                return  # another run made progress meanwhile
        self.store.replace(key, data)

    def _committed_below(self, month: Month, number: int) -> ConsolidationManifest | None:
        for lower in sorted(self._manifest_numbers(month), reverse=True):
            if lower < number:
                with contextlib.suppress(NotFoundError):
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
        """Write a projection to `.tmp/` of the attempt, and read it back to verify it.

        If a power cut removes it after the commit, readers merge events and the next run rebuilds
        it.
        """
        data, key = rows.encode(table), layout.projection_temp(month, series_code, attempt)
        file = ProjectionFile(series_code, table.num_rows, len(data), digest(data))
        self.store.create(key, data, lasting=False)
        if digest(self.store.read(key)) != file.digest:
            raise StoreError(f"{key} does not have the bytes just written: check the store")
        return file

    def move_series_projection_from_temp(
        self, month: Month, file: ProjectionFile, attempt: str
    ) -> ProjectionFile:
        """Move a committed file to its final place. Leave it if it is already there.

        Returns the file with its tag. Raises LostFileError if no file with its digest exists.
        """
        final = layout.projection(month, file.series_code)
        temp = layout.projection_temp(month, file.series_code, attempt)
        with self._checked_bytes(temp, file) as data:
            if data is not None:
                tag = self.store.replace(final, data, twin=temp)
                return msgspec.structs.replace(file, tag=tag)
        # The tag is read before the bytes. If the bytes change in between, the tag is an old one,
        # and the next run checks the bytes again.
        entry = next((entry for entry in entries(self.store, final) if entry.key == final), None)
        with self._checked_bytes(final, file) as data:
            if entry is None or data is None:
                raise LostFileError(f"{final} is neither in its place nor in .tmp/{attempt}")
        return msgspec.structs.replace(file, tag=entry.tag)

    def read_projection(self, month: Month, file: ProjectionFile, attempt: str) -> pa.Table | None:
        """Return the rows of a committed file, from its final place or from `.tmp/`.

        Returns None if it is in neither place with its digest.
        """
        final = layout.projection(month, file.series_code)
        for key in (final, layout.projection_temp(month, file.series_code, attempt)):
            with contextlib.suppress(NotFoundError):
                data = self.store.read(key)
                if len(data) == file.size and digest(data) == file.digest:
                    return rows.decode(data, key)
        return None

    def is_in_place(self, month: Month, file: ProjectionFile) -> bool:
        """Return whether the final file holds the committed bytes."""
        with self._checked_bytes(layout.projection(month, file.series_code), file) as data:
            return data is not None

    def placed(self, dataset_id: str) -> dict[Month, Placed]:
        """Return all projections of a dataset, final and temporary, from one listing."""
        return self._placed_below(layout.windows(dataset_id), dataset_id)

    def placed_in(self, month: Month) -> Placed:
        """Return the projections of one month, from one listing per series."""
        found, dataset_id = Placed(), month.dataset_id
        folders = [layout.projection_folder(month, code) for code in self._codes(dataset_id)]
        for placed in self.workers.each(lambda one: self._placed_below(one, dataset_id), folders):
            found.update(placed.get(month, Placed()))
        return found

    def cleanup_temp_projections(self, month: Month, attempts: Iterable[str] | None = None) -> int:
        """Delete the files in `.tmp/` of some attempts, or (None) of all. Return how many."""
        wanted = None if attempts is None else frozenset(attempts)
        temps = self.placed_in(month).temps
        return self.delete(key for attempt, key in temps if wanted is None or attempt in wanted)

    def delete(self, keys: Iterable[str]) -> int:
        """Delete files that no manifest needs. Return how many.

        After a power cut a file may exist again; the next run deletes it again.
        """
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
