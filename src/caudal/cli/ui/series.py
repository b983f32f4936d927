"""The series page of `caudal ui`: what a store of series holds, month by month and as of versions.

Everything is read from the store at each request, one request at a time. Nothing is changed.
"""

from dataclasses import dataclass, field
from threading import Lock

import msgspec
import pyarrow as pa

from caudal.errors import UsageError
from caudal.series import Catalog, list_datasets, read_stored, stored_codes, survey
from caudal.series.layout import NAME

_MOST_VERSIONS = 200  # that are listed: the newest


class SeriesDataset(msgspec.Struct, frozen=True):
    """A dataset of series; `problem` says why there is nothing to see."""

    name: str
    version: int
    series: int
    problem: str


class SeriesMonth(msgspec.Struct, frozen=True):
    """A month: whether its projections match the events, and how many versions brought events."""

    month: str
    state: str
    versions: int


class SeriesVersion(msgspec.Struct, frozen=True):
    """A version: when it was known, and what it brought."""

    number: int
    day: str
    source: str
    added: int
    revised: int


class SeriesContents(msgspec.Struct, frozen=True):
    """A dataset: its series, its months, and its newest versions."""

    name: str
    codes: tuple[str, ...]
    months: tuple[SeriesMonth, ...]
    versions: tuple[SeriesVersion, ...]


class SeriesValues(msgspec.Struct, frozen=True):
    """The values of one series: seconds since 1970, and null where a value is missing."""

    code: str
    unit: str
    times: list[float]
    values: list[float | None]
    known: list[int]  # the version that brought each value
    notes: tuple[str, ...]


@dataclass
class SeriesRoom:
    """Reads one store of series."""

    catalog: Catalog
    _lock: Lock = field(default_factory=Lock)

    def listing(self) -> list[SeriesDataset]:
        """Return the datasets of the store."""
        with self._lock:
            return [
                SeriesDataset(
                    one.dataset_id, one.head.version if one.head else 0, one.series, one.problem
                )
                for one in list_datasets(self.catalog)
            ]

    def contents(self, dataset: str) -> SeriesContents:
        """Return what a dataset holds."""
        with self._lock:
            newest = self._newest(dataset)
            months = tuple(
                SeriesMonth(str(one.month), str(one.freshness), len(one.inputs.versions))
                for one in survey(self.catalog, dataset)
            )
            log = self.catalog.log(dataset)
            numbers = range(newest, max(0, newest - _MOST_VERSIONS), -1)
            versions = tuple(
                SeriesVersion(one.version, one.vintage_date, one.source, one.added, one.revised)
                for one in map(log.version, numbers)
            )
            codes = tuple(stored_codes(self.catalog, dataset))
            return SeriesContents(dataset, codes, months, versions)

    def values(self, dataset: str, code: str, as_of: int | None) -> SeriesValues:
        """Return the values of a series: the newest, or as known with a version."""
        if not NAME.match(code):
            raise UsageError(f"{code[:40]!r} cannot be a series")
        with self._lock:
            self._newest(dataset)
            found = read_stored(self.catalog, dataset, code, as_of=as_of)
        table = found.table
        units = table.column("unit").unique().to_pylist()
        times = table.column("obs_time").cast(pa.int64()).to_pylist()
        return SeriesValues(
            code,
            ", ".join(one for one in units if one),
            [one / 1e6 for one in times],
            table.column("value").to_pylist(),
            table.column("version").to_pylist(),
            found.notes,
        )

    def _newest(self, dataset: str) -> int:
        head = self.catalog.log(dataset).head() if NAME.match(dataset) else None
        if head is None:
            raise UsageError(f"there is no dataset {dataset[:40]!r} in this store")
        return head.version
