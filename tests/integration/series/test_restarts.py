"""The four states in which a restarted consolidation may find a month, one test each.

docs/formats/series.md lists them. test_crashes.py has every single crash point.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.harness.misbehaving_stores import DiedError, Dying, Moment, Recording, copy_of
from tests.harness.series_world import World, check_truth, forget, objects

from caudal.series import (
    ManifestStatus,
    MonthOutcome,
    MonthRead,
    MonthResult,
    consolidate_month,
    ingest,
    read_month,
)
from caudal.series.manifest import ConsolidationManifest
from caudal.store import MemoryStore, Store

COPY = "consolidation/2024/01/manifest.json"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def crashed(world: World, at: Callable[[str, str], bool]) -> MemoryStore:
    """A store in which version 1 is consolidated, and the run for version 2 died before `at`."""
    store = MemoryStore()
    world.run(store, world.uniform(1))
    ingest(world.catalog(store), world.config, world.uniform(2))
    recording = Recording(copy_of(store))
    consolidate(world, recording)
    operations = recording.operations
    place = next(place for place, (name, key) in enumerate(operations) if at(name, key))
    with pytest.raises(DiedError):
        consolidate(world, Dying(store, at=place, moment=Moment.BEFORE))
    return store


def consolidate(world: World, store: Store) -> MonthOutcome:
    return consolidate_month(world.catalog(store), world.config, 2024, 1)


def newest(world: World, store: Store) -> ConsolidationManifest:
    found = world.catalog(store).read_consolidation_manifest(world.config.month(2024, 1))
    assert found is not None
    return found


def seen(world: World, store: Store) -> tuple[int, MonthRead]:
    """The version that readers see, whole."""
    read = read_month(world.catalog(store), world.config.month(2024, 1))
    assert read is not None
    [version] = {v for table in read.tables.values() for v in table.column("version").to_pylist()}
    return version, read


def left_behind(store: Store) -> list[str]:
    return [key for key in objects(store) if "/.tmp/" in key]


def test_restart_in_progress_is_started_over(world: World) -> None:
    store = crashed(world, lambda name, key: name == "create" and key.endswith("00000005.json"))
    died = newest(world, store)
    assert (died.status, died.number) == (ManifestStatus.IN_PROGRESS, 4)
    assert len(left_behind(store)) == 2
    assert seen(world, store)[0] == 1
    outcome = consolidate(world, store)
    assert outcome.ending is MonthResult.CONSOLIDATED
    assert outcome.reason == f"attempt {died.attempt} did not finish"
    assert outcome.manifest is not None
    assert outcome.manifest.attempt != died.attempt
    assert outcome.swept == 2
    assert seen(world, store)[0] == 2
    check_truth(world, store)


def test_restart_committed_is_rolled_forward(world: World) -> None:
    store = crashed(world, lambda name, key: name == "replace" and "BETA" in key)
    died = newest(world, store)
    assert died.status is ManifestStatus.COMMITTED
    version, read = seen(world, store)
    assert version == 2, "ALPHA from its place, BETA from .tmp/"
    assert not read.merged_from_events
    outcome = consolidate(world, store)
    assert outcome.ending is MonthResult.ROLLED_FORWARD
    assert outcome.manifest is not None
    assert outcome.manifest.attempt == died.attempt
    check_truth(world, store)


def test_restart_committed_with_a_lost_file_is_done_again(world: World) -> None:
    store = crashed(world, lambda name, key: name == "replace" and "BETA" in key)
    died = newest(world, store)
    forget(store, f"BETA/year=2024/month=01/.tmp/{died.attempt}/")
    version, read = seen(world, store)
    assert version == 2
    assert read.merged_from_events
    outcome = consolidate(world, store)
    assert outcome.ending is MonthResult.REPAIRED
    assert outcome.manifest is not None
    assert outcome.manifest.attempt != died.attempt
    assert not seen(world, store)[1].merged_from_events
    check_truth(world, store)


def test_restart_completed_deletes_what_is_left_and_renews_the_copy(world: World) -> None:
    numbered = iter(range(6))
    store = crashed(
        world,
        lambda name, key: name == "replace" and key.endswith(COPY) and next(numbered) == 2,
    )
    died = newest(world, store)
    assert died.status is ManifestStatus.COMPLETED
    assert len(left_behind(store)) == 2
    [copy] = [data for key, data in objects(store).items() if key.endswith(COPY)]
    assert b'"committed"' in copy
    assert seen(world, store)[0] == 2
    outcome = consolidate(world, store)
    assert (outcome.ending, outcome.swept) == (MonthResult.FRESH, 2)
    assert newest(world, store) == died, "nothing is written again"
    check_truth(world, store)
