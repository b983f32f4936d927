"""Reading through the catalog: a month as it was committed, never a mix of two versions.

1. Read the manifest that readers use: the newest committed one.
2. Read each file by its digest: from its final place, or else from `.tmp/` of the attempt.
3. If a file is in neither place, repeat step 1. If there is another manifest, start the whole
   month again. If it is the same, a late writer replaced a file or a file is lost: merge the month
   from the event versions that the manifest names, and report it.

So a reader sees the month either before or after a commit. A reader that is overtaken too often
merges from events too, because events never change.
"""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from caudal.series.catalog import Catalog
from caudal.series.config import SeriesConfig
from caudal.series.decisions import is_stale
from caudal.series.errors import ConfigError
from caudal.series.layout import Month
from caudal.series.manifest import ConsolidationManifest, MonthInputs
from caudal.series.merging import known_until, merge, split
from caudal.series.rows import SCHEMA

_MOST_ROUNDS = 10
_NOTHING = SCHEMA.empty_table()


@dataclass(frozen=True)
class MonthRead:
    """One month as one manifest committed it, by series."""

    manifest: ConsolidationManifest
    tables: dict[str, pa.Table]
    merged_from_events: bool = False


@dataclass(frozen=True)
class SeriesRead:
    """The rows of one series in order of time, and notes for the reader."""

    table: pa.Table = field(repr=False)
    notes: tuple[str, ...] = ()


def read_month(
    catalog: Catalog, month: Month, series_codes: Iterable[str] | None = None
) -> MonthRead | None:
    """Read the projections of a month, or of some series. Return None before the first commit."""
    wanted = None if series_codes is None else frozenset(series_codes)
    manifest = catalog.read_committed_manifest(month)
    for _ in range(_MOST_ROUNDS):
        if manifest is None:
            return None
        tables = _files(catalog, manifest, wanted)
        if tables is not None:
            return MonthRead(manifest, tables)
        again = catalog.read_committed_manifest(month)
        if again is None or again.number == manifest.number:
            break
        manifest = again
    assert manifest is not None
    return MonthRead(manifest, _from_events(catalog, manifest, wanted), merged_from_events=True)


def read_series(
    catalog: Catalog,
    config: SeriesConfig,
    series_code: str,
    *,
    first: date | None = None,
    last: date | None = None,
    as_of: int | date | None = None,
) -> SeriesRead:
    """Read one series over all months, between two dates (both included).

    `as_of` selects the values that were known with that version, or at the end of that day.
    """
    config.find(series_code)
    return read_stored(catalog, config.dataset_id, series_code, first=first, last=last, as_of=as_of)


def read_stored(
    catalog: Catalog,
    dataset_id: str,
    series_code: str,
    *,
    first: date | None = None,
    last: date | None = None,
    as_of: int | date | None = None,
) -> SeriesRead:
    """Do the same without a config. A series that is not stored has no rows."""
    months = _months(catalog, dataset_id, as_of)
    chosen = {month: inputs for month, inputs in months.items() if _overlaps(month, first, last)}
    if as_of is None:
        found = catalog.workers.each(
            lambda month: read_month(catalog, month, [series_code]), chosen
        )
        tables = [one.tables.get(series_code, _NOTHING) if one else _NOTHING for one in found]
        notes = _notes(chosen, found)
    else:
        tables = catalog.workers.each(
            lambda month: _as_known(catalog, month, chosen[month], as_of, series_code), chosen
        )
        notes = _too_early(catalog, dataset_id, as_of)
    return SeriesRead(_between(pa.concat_tables([_NOTHING, *tables]), first, last), notes)


def _notes(months: Mapping[Month, MonthInputs], found: list[MonthRead | None]) -> tuple[str, ...]:
    """Return notes for the reader about these months, one note per kind."""
    reads = list(zip(months.items(), found, strict=True))
    told = (
        _note(
            [month for (month, _), read in reads if read is None],
            "has events but is not consolidated yet",
            "have events but are not consolidated yet",
        ),
        _note(
            [month for (month, _), read in reads if read and read.merged_from_events],
            "was merged from events: a final file is lost or was overwritten",
            "were merged from events: final files are lost or were overwritten",
        ),
        _note(
            [month for (month, inputs), read in reads if read and is_stale(read.manifest, inputs)],
            "is stale: events came after it was consolidated",
            "are stale: events came after they were consolidated",
        ),
    )
    return tuple(filter(None, told))


def _too_early(catalog: Catalog, dataset_id: str, as_of: int | date) -> tuple[str, ...]:
    log = catalog.log(dataset_id)
    if isinstance(as_of, int) or log.head() is None:
        return ()
    begun = log.version(1).vintage_date
    if str(as_of) >= begun:
        return ()
    return (f"nothing was known on {as_of}: version 1 is from {begun}",)


def _note(months: list[Month], one: str, many: str) -> str:
    if len(months) > 1:
        return f"{len(months)} months ({months[0]} to {months[-1]}) {many}"
    return f"{months[0]} {one}" if months else ""


def _files(
    catalog: Catalog, manifest: ConsolidationManifest, wanted: frozenset[str] | None
) -> dict[str, pa.Table] | None:
    """Return every wanted file of a manifest, or None if one is in no place with its digest."""
    tables = {}
    for file in manifest.files:
        if wanted is None or file.series_code in wanted:
            table = catalog.read_projection(manifest.of, file, manifest.attempt)
            if table is None:
                return None
            tables[file.series_code] = table
    return tables


def _from_events(
    catalog: Catalog, manifest: ConsolidationManifest, wanted: frozenset[str] | None
) -> dict[str, pa.Table]:
    merged = catalog.log(manifest.dataset_id).merged(manifest.of, manifest.versions)
    return {code: table for code, table in split(merged) if wanted is None or code in wanted}


def _months(
    catalog: Catalog, dataset_id: str, as_of: int | date | None
) -> dict[Month, MonthInputs]:
    """Return the months of the log: now, or as of a version."""
    log = catalog.log(dataset_id)
    head = log.head()
    if not isinstance(as_of, int):
        return log.months()
    newest = head.version if head else 0
    if not 1 <= as_of <= newest:
        raise ConfigError(
            f"{dataset_id} has no version {as_of}: they are 1 to {newest}{_day_hint(as_of)}"
        )
    months = log.version(as_of).months
    return {Month.parse(dataset_id, text): months[text] for text in sorted(months)}


def _day_hint(number: int) -> str:
    """Return a hint if the number looks like a day (20250801)."""
    if len(str(number)) == 8:
        with contextlib.suppress(ValueError):
            return f"; write a day as {datetime.strptime(str(number), '%Y%m%d').date()}"
    return ""


def _as_known(
    catalog: Catalog, month: Month, inputs: MonthInputs, as_of: int | date, series_code: str
) -> pa.Table:
    log = catalog.log(month.dataset_id)
    events = log.events(month, inputs.versions)
    if isinstance(as_of, int):
        known = [known_until(table, version=as_of) for table in events]
    else:
        vintage = pa.scalar(as_of, pa.date32())
        known = [known_until(table, vintage=vintage) for table in events]
    table = merge(known, log.primary_keys)
    return table.filter(pc.equal(table.column("internal_series_code"), series_code))


def _overlaps(month: Month, first: date | None, last: date | None) -> bool:
    begins = (month.year, month.month)
    return (first is None or begins >= (first.year, first.month)) and (
        last is None or begins <= (last.year, last.month)
    )


def _between(table: pa.Table, first: date | None, last: date | None) -> pa.Table:
    days = table.column("obs_date")
    if first is not None:
        table = table.filter(pc.greater_equal(days, pa.scalar(first, pa.date32())))
        days = table.column("obs_date")
    if last is not None:
        table = table.filter(pc.less_equal(days, pa.scalar(last, pa.date32())))
    return table.sort_by("obs_time")
