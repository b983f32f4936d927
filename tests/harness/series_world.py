"""A small dataset, deterministic to the last byte, and what must hold of it at any time."""

import itertools
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from caudal.series import (
    Catalog,
    MonthOutcome,
    SeriesConfig,
    consolidate_all,
    ingest,
    layout,
    load_config,
    read_month,
)
from caudal.series import rows as series_rows
from caudal.series.merging import merge, split
from caudal.store.port import Store, entries

CODES = ("ALPHA", "BETA")
NOW = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)

CONFIG = """
dataset_id = "little"
provider = "TEST"
timezone = "America/Argentina/Buenos_Aires"
[source]
format = "csv"
""" + "".join(
    f"""
[[series]]
internal_series_code = "{code}"
unit = "u"
frequency = "D"
date_column = "day"
value_column = "{code.lower()}"
"""
    for code in CODES
)


@dataclass
class World:
    """A folder with a config and sources."""

    folder: Path
    process: int = 0  # several real processes share a folder; each has ids of its own
    config: SeriesConfig = field(init=False)
    _ids: Any = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        path = self.folder / f"little-{self.process}.toml"
        path.write_text(CONFIG)
        self.config = load_config(path)

    def source(self, name: str, rows: list[tuple[str, float, float]]) -> Path:
        path = self.folder / f"{name}.csv"
        lines = [f"{day},{alpha},{beta}" for day, alpha, beta in rows]
        path.write_text("\n".join(["day,alpha,beta", *lines]) + "\n")
        return path

    def uniform(self, number: int, months: int = 1, days: int = 3) -> Path:
        """A source whose every value says its number, so that a mixture shows."""
        rows = [
            (str(date(2024, 1 + month, 1 + day)), 1000.0 * number + day, 1000.0 * number + day)
            for month in range(months)
            for day in range(days)
        ]
        return self.source(f"uniform{number}", rows)

    def catalog(self, store: Store, *, parallel: int = 1, late_days: int = 0) -> Catalog:
        """A new process's catalog: nothing cached, attempt ids that no other one has."""
        catalog = f"p{self.process}c{next(self._ids):05}"
        numbers = itertools.count()
        return Catalog(
            store,
            clock=lambda: NOW + timedelta(days=late_days),
            new_id=lambda: f"{catalog}a{next(numbers):04}",
            parallel=parallel,
        )

    def run(
        self, store: Store, *sources: Path, parallel: int = 1, late_days: int = 0
    ) -> list[MonthOutcome]:
        """What a process does: ingest, then consolidate all that needs it."""
        catalog = self.catalog(store, parallel=parallel, late_days=late_days)
        for source in sources:
            ingest(catalog, self.config, source)
        return consolidate_all(catalog, self.config)


def objects(store: Store) -> dict[str, bytes]:
    return {entry.key: store.read(entry.key) for entry in entries(store, "")}


def forget(store: Store, part: str) -> None:
    """Lose every object with this in its key."""
    for key in objects(store):
        if part in key:
            store.delete(key)


_ATTEMPT = re.compile(r"part-[^/]+\.parquet")


def settled(store: Store, dataset_id: str = "little") -> dict[str, Any]:
    """All that a run must reproduce, without timestamps, attempt ids and what follows from them.

    Fails if the store is not at rest: a file in `.tmp/`, a part that no manifest lists, a month
    that is not completed, a copy that is not the newest manifest.
    """
    found, at_rest = objects(store), dict[str, Any]()
    newest: dict[str, str] = {}
    listed: set[str] = set()
    for key, data in sorted(found.items()):
        assert "/.tmp/" not in key, f"left over: {key}"
        numbered = layout.parse_manifest(dataset_id, key)
        if numbered:
            newest[str(numbered[0])] = key  # keys come in order
        elif "/events/" in key and key.endswith("manifest.json"):
            version = json.loads(data)
            listed |= {part["key"] for part in version["parts"]}
            at_rest[key] = _plain_version(version)
        elif not key.endswith("/manifest.json"):
            at_rest[_ATTEMPT.sub("part-*", key)] = data
    parts = {key for key in found if layout.parse_part(key)}
    assert parts == listed, f"parts that no manifest lists: {parts - listed}"
    for month, key in newest.items():
        copy = key.rpartition("/")[0] + "/manifest.json"
        assert found[copy] == found[key], f"{copy} is not the newest"
        at_rest[month] = _plain_consolidation(json.loads(found[key]))
    return at_rest


def _plain_version(manifest: dict[str, Any]) -> dict[str, Any]:
    plain = {k: v for k, v in manifest.items() if k not in ("timestamp", "attempt")}
    plain["parts"] = [{**p, "key": _ATTEMPT.sub("part-*", p["key"])} for p in manifest["parts"]]
    return plain


def _plain_consolidation(manifest: dict[str, Any]) -> dict[str, Any]:
    assert manifest["status"] == "completed", manifest
    passing = ("timestamp", "attempt", "run", "number", "standing")
    plain = {k: v for k, v in manifest.items() if k not in passing}
    plain["files"] = [{**f, "tag": "*"} for f in manifest["files"]]
    return plain


def values(table: pa.Table) -> list[tuple[str, float, int, str]]:
    """(day, value, version, flag) of every row."""
    return [
        (str(row["obs_date"]), row["value"], row["version"], row["quality_flag"])
        for row in table.to_pylist()
    ]


def check_truth(world: World, store: Store) -> None:
    """At rest, every final file holds exactly the merged events of its month."""
    settled(store)
    log = world.catalog(store).log(world.config.dataset_id)
    for month, inputs in log.months().items():
        assert inputs.versions == tuple(sorted(set(inputs.versions)))
        for code, table in split(merge(log.events(month, inputs.versions))):
            assert series_rows.encode(table) == store.read(layout.projection(month, code))


@dataclass
class Watcher:
    """A reader that checks every month it reads: one version of it, and never an older one."""

    world: World
    store: Store
    months: tuple[tuple[int, int], ...]
    reads: int = 0
    merged: int = 0
    _seen: dict[tuple[int, int], int] = field(default_factory=dict)

    def look(self) -> None:
        for place in self.months:
            catalog = self.world.catalog(self.store)
            read = read_month(catalog, self.world.config.month(*place))
            if read is None:
                assert place not in self._seen, "a month that was there is gone"
                continue
            self.reads += 1
            self.merged += read.merged_from_events
            tables = read.tables.values()
            assert set(read.tables) == set(CODES)
            versions = {v for table in tables for v in table.column("version").to_pylist()}
            numbers = {v // 1000 for table in tables for v in table.column("value").to_pylist()}
            assert len(versions) == 1, f"a mixture of versions {versions}"
            assert len(numbers) == 1, f"a mixture of sources {numbers}"
            assert max(versions) >= self._seen.get(place, 0), "an older version than before"
            self._seen[place] = max(versions)
