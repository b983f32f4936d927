"""The keys of a dataset in the store: from names to keys and back, nothing else.

    datasets/{dataset_id}/
      events/{version:08}/manifest.json                            the commit of a version
      events/{version:08}/data/year=YYYY/month=MM/part-{attempt}.parquet
      projections/windows/{series_code}/year=YYYY/month=MM/data.parquet
      projections/windows/{series_code}/year=YYYY/month=MM/.tmp/{attempt}/data.parquet
      projections/consolidation/YYYY/MM/{number:08}.json           manifests, each made once
      projections/consolidation/YYYY/MM/manifest.json              copy of the newest
      sources/{digest of an address}.json                          its ETag, see fetching.py

Numbers are padded so that a listing shows them in order. No code relies on that order.
"""

import re
from dataclasses import dataclass

DATASETS = "datasets/"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")

_PROJECTION = re.compile(
    r"windows/(?P<code>[^/]+)/year=(?P<year>\d{4})/month=(?P<month>\d{2})/"
    r"(?:\.tmp/(?P<attempt>[^/]+)/)?data\.parquet\Z"
)
_EMPTY_TEMP = re.compile(
    r"windows/[^/]+/year=(?P<year>\d{4})/month=(?P<month>\d{2})/\.tmp/(?:(?P<attempt>[^/]+)/)?\Z"
)
_MANIFEST = re.compile(r"consolidation/(?P<year>\d{4})/(?P<month>\d{2})/(?P<number>\d+)\.json\Z")
_PART = re.compile(
    r"events/(?P<version>\d+)/data/year=\d{4}/month=\d{2}/part-(?P<attempt>[^/]+)\.parquet\Z"
)
_VERSION = re.compile(r"0*[1-9]\d*\Z")
_BELOW_VERSION = re.compile(r"events/(?P<version>\d+)/")


@dataclass(frozen=True, order=True)
class Month:
    """A month of a dataset: the unit that is consolidated, committed and read."""

    dataset_id: str
    year: int
    month: int

    def __str__(self) -> str:
        return f"{self.year:04}-{self.month:02}"

    @classmethod
    def parse(cls, dataset_id: str, text: str) -> "Month":
        """Return the month that a text such as `2025-08` names."""
        year, month = text.split("-")
        return cls(dataset_id, int(year), int(month))


@dataclass(frozen=True)
class ProjectionKey:
    """The content of a projection file's key. `attempt` is empty for the final place."""

    month: Month
    series_code: str
    attempt: str


@dataclass(frozen=True)
class PartKey:
    """The content of the key of a part of the event log."""

    version: int
    attempt: str


def dataset(dataset_id: str) -> str:
    return f"{DATASETS}{dataset_id}/"


def events(dataset_id: str) -> str:
    return f"{dataset(dataset_id)}events/"


def version_folder(dataset_id: str, version: int) -> str:
    return f"{events(dataset_id)}{version:08}/"


def version_manifest(dataset_id: str, version: int) -> str:
    return f"{version_folder(dataset_id, version)}manifest.json"


def part(month: Month, version: int, attempt: str) -> str:
    folder = f"data/year={month.year:04}/month={month.month:02}"
    return f"{version_folder(month.dataset_id, version)}{folder}/part-{attempt}.parquet"


def remembered_source(dataset_id: str, name: str) -> str:
    return f"{dataset(dataset_id)}sources/{name}.json"


def windows(dataset_id: str) -> str:
    return f"{dataset(dataset_id)}projections/windows/"


def projection_folder(month: Month, series_code: str) -> str:
    place = f"year={month.year:04}/month={month.month:02}/"
    return f"{windows(month.dataset_id)}{series_code}/{place}"


def projection(month: Month, series_code: str) -> str:
    return f"{projection_folder(month, series_code)}data.parquet"


def projection_temp(month: Month, series_code: str, attempt: str) -> str:
    return f"{projection_folder(month, series_code)}.tmp/{attempt}/data.parquet"


def consolidation(dataset_id: str) -> str:
    return f"{dataset(dataset_id)}projections/consolidation/"


def manifest_folder(month: Month) -> str:
    return f"{consolidation(month.dataset_id)}{month.year:04}/{month.month:02}/"


def manifest(month: Month, number: int) -> str:
    return f"{manifest_folder(month)}{number:08}.json"


def manifest_copy(month: Month) -> str:
    return f"{manifest_folder(month)}manifest.json"


def parse_projection(dataset_id: str, key: str) -> ProjectionKey | None:
    """Parse a key below `windows/`. Return None for other files."""
    found = _PROJECTION.search(key)
    if found is None:
        return None
    month = Month(dataset_id, int(found["year"]), int(found["month"]))
    return ProjectionKey(month, found["code"], found["attempt"] or "")


def parse_empty_temp(dataset_id: str, folder: str) -> tuple[Month, str] | None:
    """Return the month and the attempt of a folder `.tmp/{attempt}/`.

    The attempt is empty for the folder `.tmp/` itself.
    """
    found = _EMPTY_TEMP.search(folder)
    if found is None:
        return None
    return Month(dataset_id, int(found["year"]), int(found["month"])), found["attempt"] or ""


def parse_manifest(dataset_id: str, key: str) -> tuple[Month, int] | None:
    """Return the month and the number of a numbered manifest's key."""
    found = _MANIFEST.search(key)
    if found is None:
        return None
    return Month(dataset_id, int(found["year"]), int(found["month"])), int(found["number"])


def parse_part(key: str) -> PartKey | None:
    """Parse the key of a part. Return None for any other key."""
    found = _PART.search(key)
    return PartKey(int(found["version"]), found["attempt"]) if found else None


def version_above(folder: str) -> int | None:
    """Return the version whose folder contains this folder."""
    found = _BELOW_VERSION.search(folder)
    return int(found["version"]) if found else None


def is_version(name: str) -> bool:
    """Return whether this is the name of a version's folder."""
    return _VERSION.match(name) is not None
