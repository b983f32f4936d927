"""Old manifests are deleted; readers, runs that were frozen and crashes are none the worse."""

from pathlib import Path

import pytest
from tests.harness.misbehaving_stores import (
    DiedError,
    Dying,
    Interrupted,
    Moment,
    Recording,
    copy_of,
)
from tests.harness.series_world import Watcher, World, check_truth, objects, settled

from caudal.series import consolidate_all, layout, vacuum_series
from caudal.series.manifest import ManifestStatus
from caudal.store import MemoryStore, Store

MONTH = ((2024, 1),)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def numbers(store: Store) -> list[int]:
    found = (layout.parse_manifest("little", key) for key in objects(store))
    return [one[1] for one in found if one]


def vacuum(world: World, store: Store, keep: float = 0.0) -> int:
    return vacuum_series(world.catalog(store), "little", keep).manifests


def consolidated(world: World, times: int) -> MemoryStore:
    store = MemoryStore()
    for number in range(times):
        world.run(store, world.uniform(1 + number))
    return store


def test_the_newest_manifests_stay(world: World) -> None:
    store = consolidated(world, 4)
    assert numbers(store) == list(range(1, 13))
    before = settled(store)
    assert vacuum(world, store) == 9
    assert numbers(store) == [10, 11, 12]
    assert vacuum(world, store) == 0
    check_truth(world, store)
    assert settled(store) == before
    world.run(store, world.uniform(5))
    assert numbers(store) == list(range(10, 16)), "the next run goes on behind the newest"


def test_manifests_of_the_time_to_keep_stay(world: World) -> None:
    store = consolidated(world, 4)
    assert vacuum(world, store, keep=1e12) == 0
    assert numbers(store) == list(range(1, 13))


def test_the_manifest_that_readers_use_stays(world: World) -> None:
    """A run writes files and dies, again and again; the committed month is older than all that."""
    store = consolidated(world, 2)
    source, operations = world.uniform(3), Recording(copy_of(store))
    world.run(operations, source)
    keys = [key for _, key in operations.operations]
    first_file = next(place for place, key in enumerate(keys) if "/.tmp/" in key)
    for _ in range(5):
        with pytest.raises(DiedError):
            world.run(Dying(store, at=first_file, moment=Moment.BEFORE), source)
        first_file = _first_file(world, store, source)
    newest = world.catalog(store).read_consolidation_manifest(world.config.month(2024, 1))
    assert newest is not None
    assert (newest.status, newest.standing) == (ManifestStatus.IN_PROGRESS, 6)
    watcher = Watcher(world, store, MONTH)
    watcher.look()
    assert vacuum(world, store) == 5
    assert min(numbers(store)) == 6
    watcher.look()
    assert watcher.merged == 0
    world.run(store, source)
    check_truth(world, store)


def _first_file(world: World, store: MemoryStore, source: Path) -> int:
    recording = Recording(copy_of(store))
    world.run(recording, source)
    names = list(recording.operations)
    return next(n for n, (name, key) in enumerate(names) if name == "create" and "/.tmp/" in key)


@pytest.mark.long
@pytest.mark.parametrize("first", [True, False], ids=["the first month", "a revision"])
@pytest.mark.parametrize("dies", [False, True], ids=["goes on", "does one operation and dies"])
def test_a_run_frozen_at_every_operation_wakes_up_behind_a_vacuum(
    world: World, first: bool, dies: bool
) -> None:
    """Its numbers are free again: it may create them, but must not believe that they are its own.

    Readers use the others' month all the time. It mends what it overwrote, or the next run does.
    """
    start = MemoryStore() if first else consolidated(world, 1)
    ours = world.uniform(2)
    recording = Recording(copy_of(start))
    world.run(recording, ours)
    others = [world.uniform(number) for number in (3, 4)]
    for at in range(len(recording.operations)):
        store = copy_of(start)
        watcher = Watcher(world, store, MONTH)

        def overtake(store: Store = store, watcher: Watcher = watcher) -> None:
            for source in others:
                world.run(store, source)
                watcher.look()
            vacuum(world, store)
            watcher.look()

        frozen = Interrupted(store, at=at, meanwhile=overtake, watch=watcher.look, dies=dies)
        try:
            world.run(frozen, ours)
        except DiedError:
            assert dies
        seen_so_far = watcher.merged
        watcher.look()
        if not dies:
            assert watcher.merged == seen_so_far, "it mends itself what it overwrote"
        consolidate_all(world.catalog(store), world.config)
        check_truth(world, store)
        watcher.look()


def test_a_crash_at_every_operation_of_a_vacuum(world: World) -> None:
    start = consolidated(world, 3)
    recording = Recording(copy_of(start))
    vacuum(world, recording)
    assert len(recording.operations) > 6
    for at in range(len(recording.operations)):
        for moment in Moment:
            store = copy_of(start)
            with pytest.raises(DiedError):
                vacuum(world, Dying(store, at=at, moment=moment))
            left = numbers(store)
            assert left == list(range(min(left), 10)), "the lowest numbers are deleted first"
            check_truth(world, store)
            vacuum(world, store)
            assert numbers(store) == [7, 8, 9]
