"""The primary key is configurable: what counts as the same observation, and what is kept of it."""

from pathlib import Path

import msgspec
import pytest
from tests.harness.series_world import World, values

from caudal.series import consolidate_all, consolidate_month, ingest, read_month, read_series
from caudal.series.errors import ChangedConfigError
from caudal.store import MemoryStore

DAYS = ("obs_date", "internal_series_code")
VINTAGES = ("obs_time", "internal_series_code", "vintage_date")


def world_with(folder: Path, *keys: str) -> World:
    world = World(folder)
    world.config = msgspec.structs.replace(world.config, primary_keys=keys)
    return world


def alpha(world: World, store: MemoryStore) -> list[tuple[str, float, int, str]]:
    return values(read_series(world.catalog(store), world.config, "ALPHA").table)


def test_a_day_has_one_observation_whatever_its_time(tmp_path: Path) -> None:
    world, store = world_with(tmp_path, *DAYS), MemoryStore()
    world.run(store, world.source("morning", [("2024-01-30 09:00", 1.0, 5.0)]))
    world.run(store, world.source("evening", [("2024-01-30 17:00", 2.0, 5.0)]))
    assert alpha(world, store) == [("2024-01-30", 2.0, 2, "revised")]
    world.run(store, world.source("night", [("2024-01-30 23:00", 2.0, 5.0)]))
    assert alpha(world, store) == [("2024-01-30", 2.0, 2, "revised")], "the value is known"


def test_two_values_of_a_day_in_one_source_are_reported(tmp_path: Path) -> None:
    rows = [("2024-01-30 09:00", 1.0, 5.0), ("2024-01-30 17:00", 2.0, 5.0)]
    by_day, by_time = world_with(tmp_path, *DAYS), World(tmp_path)
    source = by_day.source("both", rows)
    outcome = ingest(by_day.catalog(MemoryStore()), by_day.config, source)
    assert [cell.reason for cell in outcome.rejected] == ["row 2 has another value for this date"]
    assert (outcome.added, outcome.repeated) == (2, 1)
    assert ingest(by_time.catalog(MemoryStore()), by_time.config, source).added == 4


def test_every_day_of_publication_keeps_its_value(tmp_path: Path) -> None:
    world, store = world_with(tmp_path, *VINTAGES), MemoryStore()
    world.run(store, world.source("one", [("2024-01-30", 1.0, 5.0)]))
    world.run(store, world.source("two", [("2024-01-30", 2.0, 5.0)]), late_days=1)
    world.run(store, world.source("three", [("2024-01-30", 3.0, 5.0)]), late_days=1)
    expected = [("2024-01-30", 1.0, 1, "ok"), ("2024-01-30", 3.0, 3, "revised")]
    assert alpha(world, store) == expected, "the second value was replaced on its own day"
    world.run(store, world.source("again", [("2024-01-30", 3.0, 5.0)]), late_days=2)
    assert alpha(world, store) == expected, "a known value adds nothing"
    at_two = read_series(world.catalog(store), world.config, "ALPHA", as_of=2)
    assert [row[1] for row in values(at_two.table)] == [1.0, 2.0]


def test_a_month_merged_from_events_has_the_same_rows(tmp_path: Path) -> None:
    world, store = world_with(tmp_path, *VINTAGES), MemoryStore()
    world.run(store, world.source("one", [("2024-01-30", 1.0, 5.0)]))
    world.run(store, world.source("two", [("2024-01-30", 2.0, 5.0)]), late_days=1)
    before = alpha(world, store)
    month = world.config.month(2024, 1)
    for key in [one.key for one in store.list("datasets/little/projections/windows/").entries]:
        store.delete(key)
    read = read_month(world.catalog(store), month)
    assert read is not None
    assert read.merged_from_events
    assert alpha(world, store) == before
    consolidate_all(world.catalog(store), world.config)
    assert alpha(world, store) == before


@pytest.mark.parametrize("keys", [DAYS, VINTAGES])
def test_another_key_than_the_dataset_was_started_with_is_refused(
    tmp_path: Path, keys: tuple[str, ...]
) -> None:
    world, store = World(tmp_path), MemoryStore()
    source = world.source("one", [("2024-01-30", 1.0, 5.0)])
    world.run(store, source)
    other, catalog = world_with(tmp_path, *keys), world.catalog(store)
    message = "was started with primary_keys .* change it back, or use another dataset_id"
    with pytest.raises(ChangedConfigError, match=message):
        ingest(catalog, other.config, source)
    with pytest.raises(ChangedConfigError, match=message):
        consolidate_all(catalog, other.config)
    with pytest.raises(ChangedConfigError, match=message):
        consolidate_month(catalog, other.config, 2024, 1)
    swapped = world_with(tmp_path, "internal_series_code", "obs_time")
    assert ingest(catalog, swapped.config, source).version is None, "the order says nothing"
