"""Revisions, late observations, as-of, and the log itself."""

import json
from datetime import date
from pathlib import Path

import msgspec
import pytest
from tests.harness.series_world import World, forget, objects, settled, values

from caudal.series import (
    Freshness,
    MonthRead,
    consolidate_month,
    ingest,
    read_month,
    read_series,
    survey,
)
from caudal.series.errors import ChangedConfigError, ConfigError, TruncatedLogError
from caudal.store import MemoryStore


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_changed_value_is_a_newer_version_and_the_old_one_stays_known(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.source("a", [("2024-01-30", 1.0, 10.0), ("2024-01-31", 2.0, 20.0)]))
    world.run(store, world.source("b", [("2024-01-31", 2.5, 20.0)]), late_days=3)
    catalog = world.catalog(store)

    def known(as_of: int | date | None = None) -> list[tuple[str, float, int, str]]:
        return values(read_series(catalog, world.config, "ALPHA", as_of=as_of).table)

    before = [("2024-01-30", 1.0, 1, "ok"), ("2024-01-31", 2.0, 1, "ok")]
    after = [("2024-01-30", 1.0, 1, "ok"), ("2024-01-31", 2.5, 2, "revised")]
    assert known() == known(2) == known(date(2024, 5, 9)) == after
    assert known(1) == known(date(2024, 5, 6)) == known(date(2024, 5, 8)) == before
    assert known(date(2024, 5, 5)) == []
    with pytest.raises(ConfigError, match="no version 3: they are 1 to 2"):
        known(3)


def test_a_late_observation_makes_its_old_month_stale_and_is_consolidated(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.source("a", [("2024-03-01", 1.0, 1.0)]))
    late = world.source("b", [("2024-01-15", 9.0, 9.0), ("2024-03-01", 1.0, 1.0)])
    outcome = ingest(world.catalog(store), world.config, late)
    assert (outcome.added, outcome.revised) == (2, 0)
    assert [str(month) for month in outcome.months] == ["2024-01"]
    states = {str(one.month): one.freshness for one in survey(world.catalog(store), "little")}
    assert states == {"2024-01": Freshness.MISSING, "2024-03": Freshness.FRESH}
    notes = read_series(world.catalog(store), world.config, "ALPHA").notes
    assert notes == ("2024-01 has events but is not consolidated yet",)
    world.run(store)
    found = read_series(world.catalog(store), world.config, "ALPHA")
    assert [row[0] for row in values(found.table)] == ["2024-01-15", "2024-03-01"]


def test_between_two_dates_both_are_included(world: World) -> None:
    store = MemoryStore()
    days = ["2024-01-30", "2024-01-31", "2024-02-01", "2024-02-02"]
    world.run(store, world.source("a", [(day, 1.0, 1.0) for day in days]))
    found = read_series(
        world.catalog(store), world.config, "BETA",
        first=date(2024, 1, 31), last=date(2024, 2, 1),
    )  # fmt: skip
    assert [row[0] for row in values(found.table)] == days[1:3]


def test_the_same_file_twice_adds_nothing(world: World) -> None:
    store = MemoryStore()
    source = world.uniform(1)
    world.run(store, source)
    before = objects(store)
    outcome = ingest(world.catalog(store), world.config, source)
    assert (outcome.version, outcome.added, outcome.observations) == (None, 0, 6)
    world.run(store, source)
    assert objects(store) == before


def test_only_stale_months_are_touched(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.source("a", [("2024-01-01", 1.0, 1.0), ("2024-02-01", 1.0, 1.0)]))
    before = objects(store)
    world.run(store, world.source("b", [("2024-02-02", 2.0, 2.0)]))
    changed = {key for key, data in objects(store).items() if before.get(key) != data}
    assert changed
    assert not [key for key in changed if "month=01" in key or "/2024/01/" in key]


def test_the_manifest_says_what_it_must(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.uniform(1))
    folder = "datasets/little/projections/consolidation/2024/01"
    manifest = json.loads(store.read(f"{folder}/manifest.json"))
    assert manifest["dataset_id"] == "little"
    assert (manifest["year"], manifest["month"], manifest["status"]) == (2024, 1, "completed")
    assert manifest["timestamp"] == "2024-05-06T12:00:00.000000+00:00"
    assert manifest["number"] == 3
    assert [file["series_code"] for file in manifest["files"]] == ["ALPHA", "BETA"]
    assert [file["rows"] for file in manifest["files"]] == [3, 3]
    statuses = [json.loads(store.read(f"{folder}/{n:08}.json"))["status"] for n in (1, 2, 3)]
    assert statuses == ["in_progress", "committed", "completed"]


def test_a_changed_timezone_would_add_everything_again_and_is_refused(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.uniform(1))
    before = settled(store)
    elsewhere = msgspec.structs.replace(world.config, timezone="Europe/Madrid")
    with pytest.raises(
        ChangedConfigError, match="started with timezone America/Argentina/Buenos_Aires"
    ):
        ingest(world.catalog(store), elsewhere, world.uniform(2))
    assert settled(store) == before


def rebuilt_by_force(world: World, store: MemoryStore) -> MonthRead:
    """A month that is refused at first."""
    with pytest.raises(TruncatedLogError, match="--force"):
        consolidate_month(world.catalog(store), world.config, 2024, 1)
    consolidate_month(world.catalog(store), world.config, 2024, 1, force=True)
    read = read_month(world.catalog(store), world.config.month(2024, 1))
    assert read is not None
    return read


def test_a_log_that_lost_versions_is_refused_until_forced(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.uniform(1))
    world.run(store, world.uniform(2))
    forget(store, "/events/00000002/")
    assert rebuilt_by_force(world, store).manifest.versions == (1,)
    settled(store)


def test_a_log_that_lost_everything_of_a_month_is_refused_until_forced(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.uniform(1))
    forget(store, "/events/")
    read = rebuilt_by_force(world, store)
    assert (read.manifest.versions, read.tables) == ((), {})
