"""A process may stop before or after any single store operation; the next run mends everything.

The operations are not sampled: an undisturbed run is recorded, and the process is stopped at every
one of them in turn. Afterwards all objects are the undisturbed run's, apart from timestamps,
attempt ids and numbers of manifests (a crash costs numbers).
"""

import itertools
import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.harness.examples import spread
from tests.harness.misbehaving_stores import DiedError, Dying, Moment, Powered, Recording, copy_of
from tests.harness.nursery import nursery
from tests.harness.seaweed import S3Server
from tests.harness.seaweed import s3_server as s3_server
from tests.harness.series_victim import die_at, die_before_call
from tests.harness.series_world import Watcher, World, settled
from tests.harness.stores_on_s3 import s3_stores

from caudal.series import Freshness, consolidate_all, consolidate_month, ingest, survey
from caudal.store import DirectoryStore, MemoryStore, Store, temporaries

FIRST = [("2024-01-30", 1.0, 10.0), ("2024-01-31", 2.0, 20.0), ("2024-02-01", 3.0, 30.0)]
# A revision and a late observation in January, a new month; February is as it was.
SECOND = [
    *FIRST[1:],
    ("2024-01-30", 1.5, 10.0),
    ("2024-01-29", 0.5, 5.0),
    ("2024-03-01", 4.0, 40.0),
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def crash_points(run: Callable[[Store], object], start: Store) -> Iterator[tuple[int, Moment]]:
    """Every operation of an undisturbed run, before and after."""
    recording = Recording(start)
    run(recording)
    return itertools.product(range(len(recording.operations)), Moment)


def crash(run: Callable[[Store], object], store: Store, at: int, moment: Moment) -> None:
    with pytest.raises(DiedError):
        run(Dying(store, at=at, moment=moment))


@pytest.mark.parametrize("later", [False, True], ids=["first ingest", "later ingest"])
def test_series_crash_at_every_operation_of_ingest_and_consolidation(
    world: World, later: bool
) -> None:
    first, second = world.source("first", FIRST), world.source("second", SECOND)
    start = MemoryStore()
    if later:
        world.run(start, first)
    source = second if later else first

    def run(store: Store) -> None:
        world.run(store, source)

    undisturbed = copy_of(start)
    points = list(crash_points(run, undisturbed))
    expected = settled(undisturbed)
    for at, moment in points:
        store = copy_of(start)
        crash(run, store, at, moment)
        run(store)
        assert settled(store) == expected, (at, moment)
    print(f"{len(points)} crash points, all equal")
    assert len(points) > 100


def test_series_crash_and_then_nothing_but_consolidate_all(world: World) -> None:
    """Once the version is committed, `consolidate --all` alone finds what is left to do."""
    source = world.source("first", FIRST)
    undisturbed = MemoryStore()
    points = list(crash_points(lambda store: world.run(store, source), undisturbed))
    expected, finished = settled(undisturbed), 0
    for at, moment in points:
        store = MemoryStore()
        crash(lambda store: world.run(store, source), store, at, moment)
        if world.catalog(store).log("little").head() is not None:
            consolidate_all(world.catalog(store), world.config)
            assert settled(store) == expected, (at, moment)
            finished += 1
    assert finished > 50


@pytest.mark.long
def test_series_crash_again_at_every_operation_of_the_recovery(world: World) -> None:
    source = world.uniform(1)
    start = MemoryStore()
    ingest(world.catalog(start), world.config, source)

    def run(store: Store) -> None:
        consolidate_month(world.catalog(store), world.config, 2024, 1)

    undisturbed = copy_of(start)
    points = list(crash_points(run, undisturbed))
    expected, pairs = settled(undisturbed), 0
    for at, moment in points:
        crashed = copy_of(start)
        crash(run, crashed, at, moment)
        for again, when in list(crash_points(run, copy_of(crashed))):
            store = copy_of(crashed)
            crash(run, store, again, when)
            run(store)
            assert settled(store) == expected, (at, moment, again, when)
            pairs += 1
    print(f"{pairs} pairs of crash points, all equal")
    assert pairs > 1000


def test_series_crash_never_shows_a_mixture_to_readers(world: World) -> None:
    """At every crash point of a revision of a whole month, readers see the old or the new one."""
    start = MemoryStore()
    world.run(start, world.uniform(1))
    revision = world.uniform(2)

    def run(store: Store) -> None:
        world.run(store, revision)

    for at, moment in list(crash_points(run, copy_of(start))):
        store = copy_of(start)
        watcher = Watcher(world, store, ((2024, 1),))
        watcher.look()
        crash(run, store, at, moment)
        watcher.look()
        assert watcher.merged == 0, "every file of a committed month is where it should be"
        run(store)
        watcher.look()


@pytest.mark.parametrize("cut", ["all of it", "some of it"])
def test_series_crash_by_a_power_cut_at_every_operation(world: World, cut: str) -> None:
    """What need not last is gone, or back: readers see one month whole, the next run mends it."""
    dice = random.Random(cut)
    start = MemoryStore()
    world.run(start, world.uniform(1, months=2))
    revision = world.uniform(2, months=2)

    def run(store: Store) -> None:
        world.run(store, revision)

    undisturbed = copy_of(start)
    points = list(crash_points(run, undisturbed))
    expected, merged, undone = settled(undisturbed), 0, 0
    for at, moment in points:
        store = Powered(copy_of(start))
        watcher = Watcher(world, store, ((2024, 1), (2024, 2)))
        watcher.look()
        crash(run, store, at, moment)
        watcher.look()
        undone += len(store.doubtful)
        store.cut(dice.choice if cut == "some of it" else lambda states: states[0])
        watcher.look()
        merged += watcher.merged
        run(store)
        watcher.look()
        assert settled(store) == expected, (at, moment)
    print(f"{len(points)} power cuts, all equal; {undone} changes at stake, {merged} months merged")
    assert merged, "no cut took a file that a committed manifest names"


def test_series_crash_with_many_files_in_flight(world: World) -> None:
    source = world.source("first", FIRST)
    undisturbed = MemoryStore()
    points = list(crash_points(lambda store: world.run(store, source, parallel=4), undisturbed))
    expected = settled(undisturbed)
    for at, moment in points:
        store = MemoryStore()
        crash(lambda store: world.run(store, source, parallel=4), store, at, moment)
        world.run(store, source, parallel=4)
        assert settled(store) == expected, (at, moment)


def test_series_crash_between_ingest_and_consolidation_is_noticed(world: World) -> None:
    store = MemoryStore()
    world.run(store, world.source("first", FIRST))
    ingest(world.catalog(store), world.config, world.source("second", SECOND))
    states = {str(one.month): one.freshness for one in survey(world.catalog(store), "little")}
    assert states == {
        "2024-01": Freshness.STALE,
        "2024-02": Freshness.FRESH,
        "2024-03": Freshness.MISSING,
    }
    outcomes = world.run(store, world.source("first", FIRST))  # adds nothing, yet finds them
    endings = [str(outcome.ending) for outcome in outcomes]
    assert endings == [
        "consolidated",
        "fresh",
        "consolidated",
    ]


def test_series_crash_of_ingest_alone_leaves_no_parts_after_the_next_ingest(world: World) -> None:
    source = world.source("first", FIRST)

    def run(store: Store) -> None:
        ingest(world.catalog(store), world.config, source)

    undisturbed = MemoryStore()
    points = list(crash_points(run, undisturbed))
    expected = settled(undisturbed)
    for at, moment in points:
        store = MemoryStore()
        crash(run, store, at, moment)
        run(store)
        assert settled(store) == expected, (at, moment)


@pytest.mark.long
def test_series_crash_by_kill_on_a_directory(world: World, tmp_path: Path) -> None:
    """Real processes, really killed (which loses no page, so syncing would only cost time)."""
    source = world.source("first", FIRST)
    recording = Recording(DirectoryStore(tmp_path / "undisturbed", fsync=False))
    world.run(recording, source)
    expected = settled(recording.store)
    points = list(itertools.product(range(len(recording.operations)), Moment))
    with nursery() as processes:
        for at, moment in points:
            folder = tmp_path / f"store-{at}-{moment.value}"
            statuses = processes.run((die_at, (tmp_path, folder, source, at, moment)))
            assert statuses == [-signal.SIGKILL], "the victim was not killed"
            store = DirectoryStore(folder, fsync=False)
            world.run(store, source)
            assert settled(store) == expected, (at, moment)
            assert not list(folder.rglob(".tmp")), "not even an empty folder"


@pytest.mark.long
def test_series_crash_by_kill_before_every_system_call(world: World, tmp_path: Path) -> None:
    """Within a store operation too; nothing stays, not even an empty folder."""
    source = world.uniform(1, days=1)
    undisturbed = DirectoryStore(tmp_path / "undisturbed", fsync=False)
    world.run(undisturbed, source)
    expected = settled(undisturbed)
    with nursery() as processes:
        for number in itertools.count():
            folder = tmp_path / f"store-{number}"
            [status] = processes.run((die_before_call, (tmp_path, folder, source, number)))
            if status == 0:
                break
            assert status == -signal.SIGKILL, "the victim was not killed"
            for left in folder.glob(f"{temporaries.FOLDER}/*"):
                os.utime(left, (0, 0))  # younger ones may be a living writer's
            store = DirectoryStore(folder, fsync=False)
            world.run(store, source)
            assert settled(store) == expected, number
            folders = {path for path in folder.rglob("*") if path.is_dir()}
            empty = {path.name for path in folders if not any(path.iterdir())}
            assert empty <= {temporaries.FOLDER}, number
            assert not list(folder.glob(f"{temporaries.FOLDER}/*")), number
    print(f"{number} kills, all equal")
    assert number > 100


@pytest.mark.long
@pytest.mark.parametrize("later", [False, True], ids=["first ingest", "revision"])
def test_series_crash_at_every_operation_on_s3(
    world: World, s3_server: S3Server, later: bool
) -> None:
    """In `make test`: at one place in three."""
    stores = s3_stores(s3_server, f"crash-{later}")
    source = world.uniform(2 if later else 1, days=2)

    def start() -> Store:
        store = next(stores)
        if later:
            world.run(store, world.uniform(1, days=2))
        return store

    def run(store: Store) -> None:
        world.run(store, source)

    undisturbed = start()
    points = spread(list(crash_points(run, undisturbed)), 3)
    expected = settled(undisturbed)
    for at, moment in points:
        store = start()
        crash(run, store, at, moment)
        run(store)
        assert settled(store) == expected, (at, moment)
    print(f"{len(points)} crash points on S3, all equal")
