"""The difference between a source and the known values. Pure.

An observation with an unknown key is new. An observation whose value differs from the newest known
one is a revision. Known values add nothing. A key that is no longer in the source stays known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from caudal.series.config import SeriesConfig
from caudal.series.layout import Month
from caudal.series.rows import SCHEMA
from caudal.series.sources.observations import Observation

OK, REVISED = "ok", "revised"

Known = Mapping[tuple[str, datetime], float]


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


def known(merged: pa.Table) -> Known:
    """Return the newest value of every key, from merged events."""
    codes = merged.column("internal_series_code").to_pylist()
    times = merged.column("obs_time").to_pylist()
    values = merged.column("value").to_pylist()
    return {(code, time): value for code, time, value in zip(codes, times, values, strict=True)}


def changes(observations: Iterable[Observation], before: Known) -> list[Change]:
    """Return the new and the revised observations."""
    found = []
    for observation in observations:
        value = before.get((observation.series_code, observation.time))
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
    rows: list[dict[str, Any]] = [
        {
            "dataset_id": config.dataset_id,
            "provider": config.provider,
            "frequency": series[one.observation.series_code].frequency,
            "unit": series[one.observation.series_code].unit,
            "source_kind": str(config.source.format),
            "obs_time": one.observation.time,
            "obs_date": one.observation.day,
            "value": one.observation.value,
            "internal_series_code": one.observation.series_code,
            "version": version,
            "vintage_date": vintage,
            "quality_flag": one.quality_flag,
        }
        for one in ordered
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)
