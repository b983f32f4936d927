"""What others did to a dataset: a manifest that cannot be read, events that are lost, a version
that may not last yet."""

from pathlib import Path

import pytest
from tests.harness.misbehaving_stores import Failing, Recording
from tests.harness.series_world import World, check_truth, forget, objects, values

from caudal.errors import FormatError, StoreError
from caudal.series import (
    Freshness,
    MonthResult,
    SeriesRead,
    consolidate_all,
    ingest,
    read_series,
    survey,
)
from caudal.series.errors import ConsolidationError, TruncatedLogError
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


def read_alpha(world: World, store: MemoryStore) -> SeriesRead:
    return read_series(world.catalog(store), world.config, "ALPHA")


def stopped(world: World, store: MemoryStore, operation: str, part: str) -> None:
    """Version 1 is consolidated, and version 2 as far as an error let it."""
    world.run(store, world.uniform(1))
    ingest(world.catalog(store), world.config, world.uniform(2))
    failing = Failing(store, lambda name, key: name == operation and part in key, StoreError)
    with pytest.raises(ConsolidationError):
        consolidate_all(world.catalog(failing), world.config)


def test_what_readers_go_by_is_damaged_below_an_attempt_that_stopped(world: World) -> None:
    store = MemoryStore()
    stopped(world, store, "create", "/.tmp/")
    store.replace(manifest(1, 3), b"{")
    states = [one.freshness for one in survey(world.catalog(store), "little")]
    assert states == [Freshness.DAMAGED]
    with pytest.raises(FormatError, match=r"01/00000003.json is damaged: .* or move it"):
        world.run(store)
    store.delete(manifest(1, 3))  # what the message says
    read = read_alpha(world, store)
    assert {row[2] for row in values(read.table)} == {1}
    assert world.run(store)[0].ending is MonthResult.CONSOLIDATED
    assert {row[2] for row in values(read_alpha(world, store).table)} == {2}
    check_truth(world, store)


def test_all_that_readers_could_go_by_is_lost(world: World) -> None:
    store = MemoryStore()
    stopped(world, store, "create", "/.tmp/")
    for number in (1, 2, 3):
        store.delete(manifest(1, number))
    assert "has events but is not consolidated yet" in read_alpha(world, store).notes[0]
    assert world.run(store)[0].ending is MonthResult.CONSOLIDATED
    check_truth(world, store)


def test_a_manifest_that_belongs_elsewhere_is_damage(world: World) -> None:
    """As after copying a dataset by hand."""
    store = MemoryStore()
    world.run(store, world.uniform(1, months=2))
    store.replace(manifest(2, 3), store.read(manifest(1, 3)))
    with pytest.raises(
        FormatError, match=r"02/00000003.json is damaged: it belongs to little 2024-01"
    ):
        world.run(store)
    store.replace(VERSION_1, store.read(VERSION_1).replace(b'"version": 1', b'"version": 7'))
    with pytest.raises(
        FormatError, match=r"00000001/manifest.json is damaged: it belongs to little, v"
    ):
        world.run(store)


def test_a_committed_month_is_not_rebuilt_from_fewer_events_unasked(world: World) -> None:
    """Its files are lost, which a power cut may do, and one of its versions too."""
    store = MemoryStore()
    stopped(world, store, "replace", "data.parquet")
    forget(store, "/.tmp/")
    forget(store, "events/00000002")
    with pytest.raises(TruncatedLogError, match=r"restore the events, or rebuild .* --force"):
        world.run(store)
    [outcome] = consolidate_all(world.catalog(store), world.config, force=True)
    assert outcome.ending is MonthResult.REPAIRED
    check_truth(world, store)


def test_force_rebuilds_also_what_is_committed(world: World) -> None:
    store = MemoryStore()
    stopped(world, store, "replace", "data.parquet")
    [outcome] = consolidate_all(world.catalog(store), world.config, force=True)
    assert (outcome.ending, outcome.reason) == (MonthResult.CONSOLIDATED, "forced")
    check_truth(world, store)


def test_a_month_whose_events_are_lost_says_so(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.uniform(1))
    world.run(store, world.uniform(2))
    forget(store, "events/00000002")
    states = [one.freshness for one in survey(world.catalog(store), "little")]
    assert states == [Freshness.TRUNCATED]


def test_a_log_that_was_written_anew_makes_its_months_stale(world: World, tmp_path: Path) -> None:
    store = MemoryStore()
    world.run(store, world.uniform(1))
    forget(store, "/events/")
    source = tmp_path / "alpha.csv"
    source.write_text("day,alpha,beta\n2024-01-01,7,\n")
    ingest(world.catalog(store), world.config, source)
    assert "is stale" in read_alpha(world, store).notes[0]
    assert world.run(store)[0].ending is MonthResult.CONSOLIDATED
    finals = [key for key in objects(store) if key.endswith("/data.parquet")]
    assert len(finals) == 1, "BETA has no events any more, so it has no file"
    check_truth(world, store)


def test_several_months_that_fail_are_counted(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.uniform(1, months=3))
    for month in (1, 3):
        store.replace(manifest(month, 3), b"{")
    with pytest.raises(ConsolidationError, match="2 of 3 months failed; the first: "):
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


def test_a_version_is_made_to_last_before_it_counts_as_known(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.uniform(1))
    recording = Recording(store)
    assert ingest(world.catalog(recording), world.config, world.uniform(1)).version is None
    assert ("create", VERSION_1) in recording.operations


def test_sweeping_the_log_reads_no_manifest_of_tidy_versions(world: World) -> None:
    store = MemoryStore()
    for number in range(1, 6):
        world.run(store, world.uniform(number))
    recording = Recording(store)
    assert world.catalog(recording).log("little").sweep() == 0
    read = [key for name, key in recording.operations if name == "read"]
    assert not [key for key in read if VERSION_1 in key or VERSION_2 in key]
    store.create("datasets/little/events/00000002/data/year=2024/month=01/part-b.parquet", b"?")
    assert world.catalog(recording).log("little").sweep() == 1
    check_truth(world, store)


def test_a_big_file_that_lost_all_its_bytes_is_only_wrong(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    store = DirectoryStore(tmp_path)
    with checked_bytes(store, "empty", 1000, "a digest", big_file_bytes=100) as data:
        assert data is None
