"""Errors that are no crashes, and damage: cleaned up at once, said plainly, repaired."""

from pathlib import Path

import pytest
from tests.harness.misbehaving_stores import Around, Failing, Moment, Recording
from tests.harness.series_world import World, check_truth, objects

from caudal.errors import FormatError, StoreError
from caudal.series import (
    Freshness,
    ManifestStatus,
    MonthResult,
    consolidate_all,
    consolidate_month,
    ingest,
    read_month,
    survey,
)
from caudal.series.errors import ConsolidationError, IngestError
from caudal.store import DirectoryStore, MemoryStore, Store

FINAL = "datasets/little/projections/windows/BETA/year=2024/month=01/data.parquet"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def store(world: World) -> MemoryStore:
    """Version 1 is consolidated, version 2 is not."""
    store = MemoryStore()
    world.run(store, world.uniform(1))
    ingest(world.catalog(store), world.config, world.uniform(2))
    return store


def broken(store: Store, operation: str, part: str, moment: Moment = Moment.BEFORE) -> Around:
    return Failing(store, lambda name, key: name == operation and part in key, StoreError, moment)


@pytest.mark.parametrize("parallel", [1, 8])
def test_an_error_cleans_its_temporary_files_at_once(
    world: World, store: MemoryStore, parallel: int
) -> None:
    failing = broken(store, "create", "BETA/year=2024/month=01/.tmp")
    with pytest.raises(ConsolidationError, match=r"stays in_progress.*consolidate` again"):
        consolidate_month(world.catalog(failing, parallel=parallel), world.config, 2024, 1)
    assert not [key for key in objects(store) if "/.tmp/" in key]
    newest = world.catalog(store).read_consolidation_manifest(world.config.month(2024, 1))
    assert newest is not None
    assert newest.status is ManifestStatus.IN_PROGRESS
    read = read_month(world.catalog(store), world.config.month(2024, 1))
    assert read is not None
    assert read.manifest.versions == (1,)
    world.run(store)
    check_truth(world, store)


def test_an_error_after_the_commit_keeps_the_files_that_readers_need(
    world: World, store: MemoryStore
) -> None:
    failing = broken(store, "replace", FINAL)
    with pytest.raises(ConsolidationError, match="is committed and readers see it complete"):
        consolidate_month(world.catalog(failing), world.config, 2024, 1)
    read = read_month(world.catalog(store), world.config.month(2024, 1))
    assert read is not None
    assert read.manifest.versions == (1, 2)
    assert not read.merged_from_events
    [found] = consolidate_all(world.catalog(store), world.config)
    assert found.ending is MonthResult.ROLLED_FORWARD
    check_truth(world, store)


def test_a_commit_without_an_answer_is_settled_by_reading(world: World, store: MemoryStore) -> None:
    failing = broken(store, "create", "consolidation/2024/01/00000005", Moment.AFTER)
    outcome = consolidate_month(world.catalog(failing), world.config, 2024, 1)
    assert outcome.ending is MonthResult.CONSOLIDATED
    check_truth(world, store)


def test_a_commit_that_did_not_arrive_is_said(world: World, store: MemoryStore) -> None:
    failing = broken(store, "create", "consolidation/2024/01/00000005")
    with pytest.raises(ConsolidationError, match="it is unknown whether the commit succeeded"):
        consolidate_month(world.catalog(failing), world.config, 2024, 1)
    read = read_month(world.catalog(store), world.config.month(2024, 1))
    assert read is not None
    assert read.manifest.versions == (1,)
    world.run(store)
    check_truth(world, store)


@pytest.mark.parametrize(
    ("operation", "part"), [("list", "windows/"), ("create", "00000004"), ("read", "events/")]
)
def test_an_error_before_anything_was_written_says_what_to_do(
    world: World, store: MemoryStore, operation: str, part: str
) -> None:
    failing = broken(store, operation, part)
    with pytest.raises(ConsolidationError, match=r"readers see it complete; .*consolidate` again"):
        consolidate_month(world.catalog(failing), world.config, 2024, 1)


@pytest.mark.parametrize("number", [4, 5, 6])
def test_a_copy_that_cannot_be_written_only_lags(
    world: World, store: MemoryStore, number: int
) -> None:
    made = list[str]()

    def fails(name: str, key: str) -> bool:
        if name == "create" and "/consolidation/" in key:
            made.append(key)
        return name == "replace" and "/consolidation/" in key and f"{number:08}" in made[-1]

    failing = Failing(store, fails, StoreError)
    [outcome] = consolidate_all(world.catalog(failing), world.config)
    assert outcome.ending is MonthResult.CONSOLIDATED
    world.run(store)
    check_truth(world, store)


def test_what_cannot_be_cleaned_up_is_said_as_such(world: World, store: MemoryStore) -> None:
    failing = broken(store, "delete", "")
    with pytest.raises(
        ConsolidationError, match=r"is completed, but .*\.tmp/ could not be deleted"
    ):
        consolidate_all(world.catalog(failing), world.config)
    states = [one.freshness for one in survey(world.catalog(store), "little")]
    assert states == [Freshness.FRESH]
    world.run(store)
    check_truth(world, store)


def test_an_ingest_that_cannot_sweep_is_done(world: World, store: MemoryStore) -> None:
    failing = broken(store, "list", "events/00000003/")
    assert ingest(world.catalog(failing), world.config, world.uniform(3)).version == 3


def test_a_month_that_failed_is_told_even_if_sweeping_fails_too(
    world: World, store: MemoryStore
) -> None:
    failing = Failing(
        store,
        lambda name, key: (name, key) == ("list", "datasets/little/events/") or ".tmp" in key,
        StoreError,
    )
    catalog = world.catalog(failing)
    catalog.log("little")._head = 2  # its number is known, so the listing is the sweep's
    with pytest.raises(ConsolidationError, match="2024-01 stays in_progress"):
        consolidate_all(catalog, world.config)


def test_an_error_of_ingest_leaves_nothing(world: World) -> None:
    store = MemoryStore()
    failing = broken(store, "create", "month=02")
    with pytest.raises(IngestError, match="nothing was added"):
        ingest(world.catalog(failing), world.config, world.uniform(1, months=2))
    assert objects(store) == {}


def test_an_ingest_without_an_answer_is_not_added_twice(world: World) -> None:
    store = MemoryStore()
    failing = broken(store, "create", "events/00000001/manifest", Moment.AFTER)
    assert ingest(world.catalog(failing), world.config, world.uniform(1)).version == 1
    assert ingest(world.catalog(store), world.config, world.uniform(1)).version is None


@pytest.mark.parametrize("damage", ["overwritten", "deleted"])
def test_a_damaged_final_file_is_read_around_and_repaired(
    world: World, store: MemoryStore, damage: str
) -> None:
    world.run(store)
    good = store.read(FINAL)
    if damage == "deleted":
        store.delete(FINAL)
    else:
        store.replace(FINAL, b"something else")
    read = read_month(world.catalog(store), world.config.month(2024, 1))
    assert read is not None
    assert read.merged_from_events
    assert [one.freshness for one in survey(world.catalog(store), "little")] == [Freshness.SUSPECT]
    [found] = consolidate_all(world.catalog(store), world.config)
    assert found.ending is MonthResult.REPAIRED
    assert "BETA" in found.reason
    assert store.read(FINAL) == good
    check_truth(world, store)


def test_new_tags_of_the_same_bytes_are_recorded_once(world: World, tmp_path: Path) -> None:
    """As when a directory is copied to another disk."""
    store = MemoryStore()
    world.run(store, world.uniform(1))
    copied = DirectoryStore(tmp_path / "copied", fsync=False)
    for key, data in objects(store).items():
        copied.replace(key, data)
    assert [one.ending for one in world.run(copied)] == [MonthResult.RECORDED]
    recording = Recording(copied)
    assert [one.ending for one in world.run(recording)] == [MonthResult.FRESH]
    assert not [op for op, _ in recording.operations if op not in ("list", "read")]
    check_truth(world, copied)


def test_a_stale_copy_of_the_manifest_is_refreshed(world: World, store: MemoryStore) -> None:
    world.run(store)
    copy = "datasets/little/projections/consolidation/2024/01/manifest.json"
    newest = store.read(copy)
    store.replace(copy, b"{}")
    world.run(store)
    assert store.read(copy) == newest


def test_a_newer_copy_of_the_manifest_stays(world: World) -> None:
    """Another run went on after this one looked at the month."""
    store = MemoryStore()
    world.run(store, world.uniform(1))
    catalog, month = world.catalog(store), world.config.month(2024, 1)
    before = catalog.read_consolidation_manifest(month)
    assert before is not None
    world.run(store, world.uniform(2))
    catalog.refresh_manifest_copy(before)
    check_truth(world, store)


def test_a_damaged_event_manifest_is_named(world: World, store: MemoryStore) -> None:
    store.replace("datasets/little/events/00000002/manifest.json", b"{")
    with pytest.raises(FormatError, match=r"00000002/manifest.json is damaged.* from a backup"):
        consolidate_all(world.catalog(store), world.config)


def test_a_damaged_event_file_is_named(world: World, store: MemoryStore) -> None:
    [part] = [key for key in objects(store) if "events/00000002/data" in key]
    store.replace(part, b"rot")
    with pytest.raises(ConsolidationError, match=f"{part} is damaged"):
        consolidate_all(world.catalog(store), world.config)
    with pytest.raises(FormatError, match="restore it from a backup"):
        ingest(world.catalog(store), world.config, world.uniform(3))


def test_one_broken_month_does_not_hold_up_the_others(world: World) -> None:
    store = MemoryStore()
    ingest(world.catalog(store), world.config, world.uniform(1, months=3))
    failing = broken(store, "create", "month=02/.tmp")
    with pytest.raises(ConsolidationError, match="2024-02"):
        consolidate_all(world.catalog(failing), world.config)
    states = [one.freshness for one in survey(world.catalog(store), "little")]
    assert states == [Freshness.FRESH, Freshness.UNFINISHED, Freshness.FRESH]


def test_big_files_travel_through_a_local_file(world: World, store: MemoryStore) -> None:
    catalog = world.catalog(store)
    catalog.big_file_bytes = 100
    consolidate_all(catalog, world.config)
    check_truth(world, store)
    store.replace(FINAL, store.read(FINAL)[:-1] + b"?")
    catalog = world.catalog(store)
    catalog.big_file_bytes = 100
    assert [one.ending for one in consolidate_all(catalog, world.config)] == [MonthResult.REPAIRED]
