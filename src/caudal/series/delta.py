"""The difference between a source and the known values. Pure.

An observation with an unknown key is new. An observation whose value differs from the newest known
one is a revision. Known values add nothing. A key that is no longer in the source stays known.

A source has no versions and no vintage dates. So where the primary key contains them, the rest of
the key finds the newest known value.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa

from caudal.series.config import Series, SeriesConfig
from caudal.series.layout import Month
from caudal.series.rows import MADE_BY_INGEST, SCHEMA
from caudal.series.sources.observations import Observation

OK, REVISED = "ok", "revised"

SourceKey = tuple[Any, ...]
Known = Mapping[SourceKey, float]


@dataclass(frozen=True)
class Change:
    """An observation that the log does not contain yet."""

    observation: Observation
    quality_flag: str


def by_month(
    dataset_id: str, observations: Iterable[Observation]
) -> dict[Month, list[Observation]]:
    """Group observations by the month of their local date, in the order of months."""
    months: dict[Month, list[Observation]] = {}
    for observation in observations:
        day = observation.day
        months.setdefault(Month(dataset_id, day.year, day.month), []).append(observation)
    return dict(sorted(months.items()))


def known(merged: pa.Table, config: SeriesConfig) -> Known:
    """Return the newest value of every key, from merged events."""
    columns = [merged.column(name).to_pylist() for name in _source_columns(config)]
    values = merged.column("value").to_pylist()
    return dict(zip(zip(*columns, strict=True), values, strict=True))  # of equal keys the last


def changes(
    observations: Iterable[Observation], before: Known, config: SeriesConfig
) -> list[Change]:
    """Return the new and the revised observations."""
    found = []
    of_series = {series.internal_series_code: series for series in config.series}
    columns = _source_columns(config)
    for observation in observations:
        row = _row(observation, of_series[observation.series_code], config)
        value = before.get(tuple(row[name] for name in columns))
        if value is None:
            found.append(Change(observation, OK))
        elif value != observation.value:
            found.append(Change(observation, REVISED))
    return found


def rows_of(
    changed: Sequence[Change], config: SeriesConfig, *, version: int, vintage: date
) -> pa.Table:
    """Return changes as rows of an event version, in the order of their keys."""
    series = {entry.internal_series_code: entry for entry in config.series}
    ordered = sorted(changed, key=lambda one: (one.observation.series_code, one.observation.time))
    rows = [
        _row(one.observation, series[one.observation.series_code], config)
        | {"version": version, "vintage_date": vintage, "quality_flag": one.quality_flag}
        for one in ordered
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _source_columns(config: SeriesConfig) -> list[str]:
    """Return the columns of the primary key that a source has."""
    return [name for name in config.primary_keys if name not in MADE_BY_INGEST]


def _row(observation: Observation, series: Series, config: SeriesConfig) -> dict[str, Any]:
    """Return an observation as a row, without what only an ingest adds."""
    return {
        "dataset_id": config.dataset_id,
        "provider": config.provider,
        "frequency": series.frequency,
        "unit": series.unit,
        "source_kind": str(config.source.format),
        "obs_time": observation.time,
        "obs_date": observation.day,
        "value": observation.value,
        "internal_series_code": observation.series_code,
    }
