"""Ingest: the new content of a source becomes one event version, completely or not at all.

1. Read the source. Read the head of the log, version v (0 before the first).
2. Compare each month of the source with the log. If nothing is new, stop.
3. Write one part per month into the folder of version v + 1, under the name of this attempt.
4. Create the manifest of version v + 1. **This is the commit.**
5. Delete the parts in its folder that no manifest lists.

A crash before step 4 leaves parts that no manifest lists. They are deleted after the number is
taken. A crash after step 4 leaves stale months. Every consolidation finds them by itself.

If another ingest takes the number first, this one deletes its own parts and starts again with the
new head, so that it compares with the winner's data. If the outcome of the create in step 4 is
unknown, the parts are kept: they may be committed.
"""

import contextlib
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from caudal.errors import AlreadyExistsError, CaudalError, StoreError
from caudal.series import delta
from caudal.series.addresses import address_name, told_address
from caudal.series.catalog import Catalog
from caudal.series.config import SeriesConfig, SourceKind
from caudal.series.delta import Change
from caudal.series.errors import IngestError
from caudal.series.fetching import known_etag, remember
from caudal.series.layout import Month
from caudal.series.manifest import NO_INPUTS, MonthInputs, MonthPart, VersionManifest
from caudal.series.sources import (
    Observation,
    RejectedCell,
    SourceReading,
    parse_source,
    read_source,
)

_MOST_RACES = 100


@dataclass(frozen=True)
class IngestOutcome:
    """The result of an ingest. `version` is None if nothing was new.

    `is_unchanged`: the source was not read, because it has not changed since the last time.
    `newest` is the version at which the log has everything that was read.
    """

    version: int | None
    added: int = 0
    revised: int = 0
    months: tuple[Month, ...] = ()
    observations: int = 0
    races: int = 0  # how often another ingest took the number first
    blank_rows: int = 0
    repeated: int = 0
    rejected: tuple[RejectedCell, ...] = field(default=(), repr=False)
    is_unchanged: bool = False
    newest: int = 0


def ingest(catalog: Catalog, config: SeriesConfig, source: Path | str) -> IngestOutcome:
    """Add the new observations of a source to the event log, as one version.

    Consolidation is a separate step: `consolidate_all` finds the months that became stale.
    """
    if config.source.kind is SourceKind.HTTP:
        return _ingest_address(catalog, config, str(source))
    return _ingest(catalog, config, Path(source).name, read_source(config, source, catalog.store))


def _ingest_address(catalog: Catalog, config: SeriesConfig, address: str) -> IngestOutcome:
    from caudal.series.sources.http import fetch

    log = catalog.log(config.dataset_id)
    log.require_same(config)
    fetched = fetch(address, known_etag(catalog, config, address))
    head = log.head()
    if fetched.data is None and head is not None:
        log.settle(head.version)
        return IngestOutcome(None, is_unchanged=True)
    reading = parse_source(config, told_address(address), fetched.data or b"")
    outcome = _ingest(catalog, config, address_name(address), reading)
    newest = log.version(outcome.newest)
    if fetched.etag:
        remember(catalog, config, address, fetched.etag, newest)
    return outcome


def _ingest(
    catalog: Catalog, config: SeriesConfig, source: str, reading: SourceReading
) -> IngestOutcome:
    months = delta.by_month(config.dataset_id, reading.observations)
    log = catalog.log(config.dataset_id)
    for races in range(_MOST_RACES):
        head = log.head()
        log.require_same(config)
        changed = _changes(catalog, config, months, head)
        if not changed:
            newest = head.version if head else 0
            log.settle(newest)
            return _outcome(reading, None, {}, races, newest)
        run = _IngestRun(catalog, config, source, head)
        try:
            version = run.commit(changed)
        except AlreadyExistsError:
            run.forget()
            continue
        with contextlib.suppress(StoreError):  # every consolidation sweeps too
            log.sweep(version.version)
        return _outcome(reading, version, changed, races, version.version)
    raise IngestError(f"{source}: too many other ingests at once: nothing was added; try again")


class _IngestRun:
    """One attempt to commit one version number."""

    def __init__(
        self, catalog: Catalog, config: SeriesConfig, source: str, head: VersionManifest | None
    ) -> None:
        self._catalog = catalog
        self._config = config
        self._source = source
        self._head = head
        self._log = catalog.log(config.dataset_id)
        self._attempt = catalog.new_id()
        self._parts: list[MonthPart] = []

    def commit(self, changed: dict[Month, list[Change]]) -> VersionManifest:
        """Do steps 3 and 4. Raise AlreadyExistsError if another ingest has the number."""
        now = self._catalog.clock()
        try:
            self._write(changed, now)
        except Exception as error:
            with contextlib.suppress(StoreError):
                self.forget()
            if not isinstance(error, CaudalError | OSError):
                raise
            raise IngestError(
                f"{self._source}: {error}; nothing was added: fix the cause, then ingest it again"
            ) from error
        version = self._manifest(changed, now)
        self._create(version)
        return version

    def forget(self) -> None:
        """Delete the parts of an attempt that can no longer commit."""
        self._catalog.delete(part.key for part in self._parts)

    @property
    def _number(self) -> int:
        return self._head.version + 1 if self._head else 1

    def _write(self, changed: dict[Month, list[Change]], now: datetime) -> None:
        vintage = now.astimezone(ZoneInfo(self._config.timezone)).date()

        def write(month: Month) -> None:
            table = delta.rows_of(
                changed[month], self._config, version=self._number, vintage=vintage
            )
            self._parts.append(self._log.write_part(month, self._number, self._attempt, table))

        self._catalog.workers.each(write, changed)
        self._parts.sort(key=lambda part: part.month)

    def _manifest(self, changed: dict[Month, list[Change]], now: datetime) -> VersionManifest:
        months: dict[str, MonthInputs] = dict(self._head.months) if self._head else {}
        for part in self._parts:
            before = months.get(part.month, NO_INPUTS)
            months[part.month] = before.with_part(self._number, part.digest)
        added, revised = _count(changed)
        return VersionManifest(
            dataset_id=self._config.dataset_id,
            version=self._number,
            attempt=self._attempt,
            timestamp=self._catalog.timestamp(),
            vintage_date=str(now.astimezone(ZoneInfo(self._config.timezone)).date()),
            source=self._source,
            added=added,
            revised=revised,
            parts=tuple(self._parts),
            months=dict(sorted(months.items())),
            timezone=self._config.timezone,
            primary_keys=self._log.primary_keys if self._head else self._config.primary_keys,
        )

    def _create(self, version: VersionManifest) -> None:
        try:
            self._log.commit(version)
        except AlreadyExistsError:
            raise
        except StoreError as error:
            with contextlib.suppress(StoreError):
                if self._log.version(version.version) == version:
                    return
            raise IngestError(
                f"{self._source}: it is unknown whether version {version.version} "
                f"was stored: {error}; ingest it again: nothing is added twice"
            ) from error


def _changes(
    catalog: Catalog,
    config: SeriesConfig,
    months: dict[Month, list[Observation]],
    head: VersionManifest | None,
) -> dict[Month, list[Change]]:
    log = catalog.log(config.dataset_id)

    def changes(month: Month) -> list[Change]:
        inputs = head.months.get(str(month), NO_INPUTS) if head else NO_INPUTS
        before = delta.known(log.merged(month, inputs.versions), config)
        return delta.changes(months[month], before, config)

    found = zip(months, catalog.workers.each(changes, months), strict=True)
    return {month: some for month, some in found if some}


def _count(changed: dict[Month, list[Change]]) -> tuple[int, int]:
    """Return the number of new observations, and the number of revisions."""
    flags = [one.quality_flag for some in changed.values() for one in some]
    revised = flags.count(delta.REVISED)
    return len(flags) - revised, revised


def _outcome(
    reading: SourceReading,
    version: VersionManifest | None,
    changed: dict[Month, list[Change]],
    races: int,
    newest: int,
) -> IngestOutcome:
    return IngestOutcome(
        version=version.version if version else None,
        added=version.added if version else 0,
        revised=version.revised if version else 0,
        months=tuple(changed),
        observations=len(reading.observations),
        races=races,
        blank_rows=reading.blank_rows,
        repeated=reading.repeated,
        rejected=tuple(reading.rejected),
        newest=newest,
    )
