"""What others did to a dataset: a manifest that cannot be read, a version that may not last yet."""

from pathlib import Path

import pytest
from tests.series.stores import Recording
from tests.series.world import World, check_truth

from caudal.errors import FormatError
from caudal.series import Freshness, consolidate_all, survey
from caudal.series.errors import ConsolidationError
from caudal.series.transfer import checked_bytes
from caudal.store import DirectoryStore, MemoryStore

VERSION_1 = "datasets/little/events/00000001/manifest.json"
VERSION_2 = "datasets/little/events/00000002/manifest.json"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def manifest(month: int, number: int) -> str:
    return f"datasets/little/projections/consolidation/2024/{month:02}/{number:08}.json"


def test_a_damaged_manifest_stops_its_own_month_only(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.uniform(1, months=3))
    store.replace(manifest(2, 3), b"{")
    states = [one.freshness for one in survey(world.catalog(store), "little")]
    assert states == [Freshness.FRESH, Freshness.DAMAGED, Freshness.FRESH]
    with pytest.raises(FormatError, match=r"02/00000003.json is damaged: .* or move it"):
        world.run(store, world.uniform(2, months=3))
    states = [one.freshness for one in survey(world.catalog(store), "little")]
    assert states == [Freshness.FRESH, Freshness.DAMAGED, Freshness.FRESH]
    store.delete(manifest(2, 3))  # what the message says
    world.run(store)
    check_truth(world, store)


def test_several_months_that_fail_are_counted(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.uniform(1, months=3))
    for month in (1, 3):
        store.replace(manifest(month, 3), b"{")
    with pytest.raises(ConsolidationError, match="2 of 3 months failed, the others are done"):
        consolidate_all(world.catalog(store), world.config)


def test_a_version_is_made_to_last_before_a_next_one_builds_on_it(world: World) -> None:
    """Its writer may be stopped between naming its manifest and syncing that name."""
    store = MemoryStore()
    world.run(store, world.uniform(1))
    recording = Recording(store)
    world.run(recording, world.uniform(2))
    made = [key for name, key in recording.operations if name == "create"]
    assert made.index(VERSION_1) < made.index(VERSION_2)


def test_a_version_is_made_to_last_before_a_month_is_made_of_it(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.uniform(1, months=2))
    recording = Recording(store)
    consolidate_all(world.catalog(recording), world.config, force=True)
    made = [key for name, key in recording.operations if name == "create"]
    assert made.index(VERSION_1) < made.index(manifest(1, 4))
    assert made.count(VERSION_1) == 1, "once a run"


def test_a_big_file_that_lost_all_its_bytes_is_only_wrong(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    store = DirectoryStore(tmp_path)
    with checked_bytes(store, "empty", 1000, "a digest", big_file_bytes=100) as data:
        assert data is None
