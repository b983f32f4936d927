"""The steps of one attempt to consolidate a month, numbered as in consolidation.py.

Every step that changes which run may commit is one create of the next numbered manifest. If the
number is taken, another run was faster: the step raises OvertakenError, and the caller must read
the state of the month again.
"""

import contextlib
from collections.abc import Iterable

import msgspec

from caudal.errors import AlreadyExistsError, StoreError
from caudal.series.catalog import Catalog
from caudal.series.errors import ConsolidationError, LostFileError
from caudal.series.layout import Month, projection_temp
from caudal.series.manifest import (
    ConsolidationManifest,
    ManifestStatus,
    MonthInputs,
    ProjectionFile,
)
from caudal.series.merging import split

AGAIN = "run `caudal series consolidate` again"


class OvertakenError(Exception):
    """Another run created the manifest that this run was about to create."""


class Attempt:
    """The steps that a run takes to consolidate a month."""

    def __init__(self, catalog: Catalog, month: Month) -> None:
        self._catalog = catalog
        self._month = month
        self._run = catalog.new_id()

    def begin(
        self,
        inputs: MonthInputs,
        newest: ConsolidationManifest | None,
        standing: ConsolidationManifest | None,
    ) -> ConsolidationManifest:
        """Do step 2: create the manifest `in_progress`. No older attempt can commit after that."""
        month = self._month
        begun = ConsolidationManifest(
            dataset_id=month.dataset_id,
            year=month.year,
            month=month.month,
            status=ManifestStatus.IN_PROGRESS,
            timestamp=self._catalog.timestamp(),
            number=newest.number + 1 if newest else 1,
            attempt=self._catalog.new_id(),
            run=self._run,
            fingerprint=inputs.fingerprint,
            versions=inputs.versions,
            standing=standing.number if standing else None,
        )
        self._create(begun, newest)
        return begun

    def write(self, begun: ConsolidationManifest) -> tuple[ProjectionFile, ...]:
        """Do step 3: write every projection of the month to `.tmp/` and read it back.

        After an error, the files of this attempt are deleted.
        """
        try:
            return self._write(begun)
        except Exception as error:
            with contextlib.suppress(StoreError):
                self._catalog.cleanup_temp_projections(self._month, [begun.attempt])
            if self._is_overtaken(begun):  # so other runs were free to delete our files
                raise OvertakenError from error
            raise ConsolidationError(
                f"{self._month} stays in_progress and readers see it as it was before: {error}; "
                f"fix the cause, then {AGAIN}"
            ) from error

    def commit(
        self, begun: ConsolidationManifest, files: tuple[ProjectionFile, ...]
    ) -> ConsolidationManifest:
        """Do step 4: commit.

        If the outcome of the create is unknown, read the manifest to find out.
        """
        committed = self._following(begun, ManifestStatus.COMMITTED, files)
        try:
            self._create(committed, begun)
        except OvertakenError:
            with contextlib.suppress(StoreError):  # then the winner or the next run deletes them
                self._catalog.delete(self._temps(begun.attempt, files))
            raise
        except StoreError as error:
            if not self._landed(committed, begun):
                raise ConsolidationError(
                    f"{self._month}: it is unknown whether the commit succeeded: {error}; "
                    f"readers see a complete month in both cases; {AGAIN}"
                ) from error
        return committed

    def finish(self, committed: ConsolidationManifest) -> ConsolidationManifest:
        """Do steps 5 to 7, for our own attempt or for one that stopped after its commit."""
        files = self._moved(committed)
        completed = self._following(committed, ManifestStatus.COMPLETED, files)
        try:
            self._create(completed, committed)
        except StoreError as error:
            raise ConsolidationError(
                f"{self._month} is committed and every file is in its place, but the manifest "
                f"that records it could not be written: {error}; {AGAIN}"
            ) from error
        self.sweep(ManifestStatus.COMPLETED, self._temps(committed.attempt, files))
        return completed

    def sweep(self, status: ManifestStatus, keys: Iterable[str]) -> int:
        """Delete files that no reader needs. Return how many."""
        try:
            return self._catalog.delete(keys)
        except StoreError as error:
            raise ConsolidationError(
                f"{self._month} is {status}, but the files left in .tmp/ could not be deleted: "
                f"{error}; {AGAIN}"
            ) from error

    def record(
        self, completed: ConsolidationManifest, files: tuple[ProjectionFile, ...]
    ) -> ConsolidationManifest:
        """Record new tags of files that have the committed bytes."""
        recorded = self._following(completed, ManifestStatus.COMPLETED, files)
        self._create(recorded, completed)
        return recorded

    def _write(self, begun: ConsolidationManifest) -> tuple[ProjectionFile, ...]:
        catalog, month = self._catalog, self._month
        merged = catalog.log(month.dataset_id).merged(month, begun.versions)
        return tuple(
            catalog.workers.each(
                lambda one: catalog.write_series_projection_temp(
                    month, one[0], begun.attempt, one[1]
                ),
                split(merged),
            )
        )

    def _moved(self, committed: ConsolidationManifest) -> tuple[ProjectionFile, ...]:
        catalog, month = self._catalog, self._month
        try:
            moved = catalog.workers.each(
                lambda file: catalog.move_series_projection_from_temp(
                    month, file, committed.attempt
                ),
                committed.files,
            )
        except LostFileError:
            raise
        except StoreError as error:
            raise ConsolidationError(
                f"{month} is committed and readers see it complete, but not every file is in "
                f"its place: {error}; {AGAIN}"
            ) from error
        return tuple(moved)

    def _following(
        self,
        before: ConsolidationManifest,
        status: ManifestStatus,
        files: tuple[ProjectionFile, ...],
    ) -> ConsolidationManifest:
        """Return the manifest that follows another one of the same attempt."""
        return msgspec.structs.replace(
            before,
            status=status,
            run=self._run,
            files=files,
            number=before.number + 1,
            standing=before.number + 1,
            timestamp=self._catalog.timestamp(),
        )

    def _create(
        self, manifest: ConsolidationManifest, before: ConsolidationManifest | None
    ) -> None:
        try:
            self._catalog.write_consolidation_manifest(manifest, before)
        except AlreadyExistsError as error:
            raise OvertakenError from error

    def _landed(self, manifest: ConsolidationManifest, before: ConsolidationManifest) -> bool:
        with contextlib.suppress(StoreError):
            found = self._catalog.read_numbered_manifest(self._month, manifest.number)
            return found == manifest and self._catalog.follows(self._month, before)
        return False

    def _is_overtaken(self, begun: ConsolidationManifest) -> bool:
        with contextlib.suppress(StoreError):
            newest = self._catalog.read_consolidation_manifest(self._month)
            return newest is not None and newest.number > begun.number
        return False

    def _temps(self, attempt: str, files: tuple[ProjectionFile, ...]) -> list[str]:
        return [projection_temp(self._month, file.series_code, attempt) for file in files]
