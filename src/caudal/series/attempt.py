"""The steps of one attempt at a month, numbered as in consolidation.py.

Every step that changes who may commit is one create of the next numbered manifest. If the number is
taken, somebody else moved on: OvertakenError, and the month has to be looked at again.
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
from caudal.series.merging import merge, split

AGAIN = "run `caudal series consolidate` again"


class OvertakenError(Exception):
    """Another run created the manifest that we were about to create."""


class Attempt:
    """What a run does to a month, step by step."""

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
        """Step 2: `in_progress`, which no older attempt survives."""
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
        self._create(begun)
        return begun

    def write(self, begun: ConsolidationManifest) -> tuple[ProjectionFile, ...]:
        """Step 3: every projection of the month in `.tmp/`, read back. An error cleans up."""
        try:
            return self._write(begun)
        except Exception as error:
            with contextlib.suppress(StoreError):
                self._catalog.cleanup_temp_projections(self._month, [begun.attempt])
            if self._is_overtaken(begun):  # our files were anyone's to delete
                raise OvertakenError from error
            raise ConsolidationError(
                f"{self._month} stays in_progress and readers see it as it was before: {error}; "
                f"when that is mended, {AGAIN}"
            ) from error

    def commit(
        self, begun: ConsolidationManifest, files: tuple[ProjectionFile, ...]
    ) -> ConsolidationManifest:
        """Step 4: the commit. A create whose outcome is unknown is settled by reading it."""
        committed = self._following(begun, ManifestStatus.COMMITTED, files)
        try:
            self._create(committed)
        except OvertakenError:
            with contextlib.suppress(StoreError):  # then the winner, or the next run, sweeps them
                self._catalog.delete(self._temps(begun.attempt, files))
            raise
        except StoreError as error:
            if not self._landed(committed):
                raise ConsolidationError(
                    f"{self._month}: the store did not say whether the commit arrived: {error}; "
                    f"readers see the month whole either way; {AGAIN}"
                ) from error
        return committed

    def finish(self, committed: ConsolidationManifest) -> ConsolidationManifest:
        """Steps 5 to 7, for an attempt of our own or for one that stopped after its commit."""
        files = self._moved(committed)
        completed = self._following(committed, ManifestStatus.COMPLETED, files)
        try:
            self._create(completed)
        except StoreError as error:
            raise ConsolidationError(
                f"{self._month} is committed and every file is in its place, but that could not "
                f"be written down: {error}; {AGAIN}"
            ) from error
        self.sweep(ManifestStatus.COMPLETED, self._temps(committed.attempt, files))
        return completed

    def sweep(self, status: ManifestStatus, keys: Iterable[str]) -> int:
        """Delete what nobody goes by; gives how many."""
        try:
            return self._catalog.delete(keys)
        except StoreError as error:
            raise ConsolidationError(
                f"{self._month} is {status}, but what is left in .tmp/ could not be deleted: "
                f"{error}; {AGAIN}"
            ) from error

    def record(
        self, completed: ConsolidationManifest, files: tuple[ProjectionFile, ...]
    ) -> ConsolidationManifest:
        """Note new tags of files whose bytes are the committed ones."""
        recorded = self._following(completed, ManifestStatus.COMPLETED, files)
        self._create(recorded)
        return recorded

    def _write(self, begun: ConsolidationManifest) -> tuple[ProjectionFile, ...]:
        catalog, month = self._catalog, self._month
        events = catalog.log(month.dataset_id).events(month, begun.versions)
        return tuple(
            catalog.workers.each(
                lambda one: catalog.write_series_projection_temp(
                    month, one[0], begun.attempt, one[1]
                ),
                split(merge(events)),
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
                f"{month} is committed and readers see it whole, but not every file is in "
                f"its place: {error}; {AGAIN}"
            ) from error
        return tuple(moved)

    def _following(
        self,
        before: ConsolidationManifest,
        status: ManifestStatus,
        files: tuple[ProjectionFile, ...],
    ) -> ConsolidationManifest:
        """The manifest right after another one of the same attempt."""
        return msgspec.structs.replace(
            before,
            status=status,
            run=self._run,
            files=files,
            number=before.number + 1,
            standing=before.number + 1,
            timestamp=self._catalog.timestamp(),
        )

    def _create(self, manifest: ConsolidationManifest) -> None:
        try:
            self._catalog.write_consolidation_manifest(manifest)
        except AlreadyExistsError as error:
            raise OvertakenError from error

    def _landed(self, manifest: ConsolidationManifest) -> bool:
        with contextlib.suppress(StoreError):
            found = self._catalog.read_numbered_manifest(self._month, manifest.number)
            return found == manifest
        return False

    def _is_overtaken(self, begun: ConsolidationManifest) -> bool:
        with contextlib.suppress(StoreError):
            newest = self._catalog.read_consolidation_manifest(self._month)
            return newest is not None and newest.number > begun.number
        return False

    def _temps(self, attempt: str, files: tuple[ProjectionFile, ...]) -> list[str]:
        return [projection_temp(self._month, file.series_code, attempt) for file in files]
