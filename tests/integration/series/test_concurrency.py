"""Several at once: one wins, none corrupts, the losers say so; readers never see a mixture.

Every value of a source says the source's number, and every ingest revises every value of a month.
So a month that is read whole holds one version and one number, and nothing else.
"""

import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.harness.examples import examples, spread
from tests.harness.misbehaving_stores import (
    ContentTagged,
    DiedError,
    Dying,
    Gated,
    Interrupted,
    Moment,
    Recording,
    Turns,
    Unreliable,
    copy_of,
)
from tests.harness.nursery import nursery
from tests.harness.seaweed import S3Server
from tests.harness.seaweed import s3_server as s3_server
from tests.harness.series_actors import Place, consolidate, ingest_and_consolidate, watch
from tests.harness.series_world import CODES, Watcher, World, check_truth, objects
from tests.harness.stores_on_s3 import s3_stores

from caudal.errors import StoreError
from caudal.series import MonthResult, consolidate_all, consolidate_month, ingest, layout
from caudal.series.errors import LostFileError
from caudal.store import DirectoryStore, MemoryStore, S3Store, Store
from caudal.store.port import entries

MONTH = ((2024, 1),)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture(params=["memory", "tags by content", "directory", "s3"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Empty stores of one kind."""
    if request.param == "memory":
        return (MemoryStore() for _ in itertools.count())
    if request.param == "tags by content":
        return (ContentTagged(MemoryStore()) for _ in itertools.count())
    if request.param == "directory":
        return (DirectoryStore(tmp_path / f"{n}", fsync=False) for n in itertools.count())
    server = request.getfixturevalue("s3_server")
    return s3_stores(server, request.node.name)


def begun(world: World, store: Store) -> Store:
    """A store in which version 1 is consolidated."""
    world.run(store, world.uniform(1))
    return store


def operations(world: World, store: Store, source: Path) -> int:
    recording = Recording(store)
    world.run(recording, source)
    return len(recording.operations)


@pytest.mark.long
@pytest.mark.parametrize("dies", [False, True], ids=["goes on", "does one operation and dies"])
def test_series_writer_frozen_at_every_operation_wakes_up_late(
    world: World, stores: Iterator[Store], dies: bool
) -> None:
    """On S3 in `make test`: at one in four."""
    ours, theirs = world.uniform(2), world.uniform(3)
    merged = 0
    first = next(stores)
    places = range(operations(world, begun(world, first), ours))
    tried = spread(places, 4 if isinstance(first, S3Store) else 1)
    for at in tried:
        store = begun(world, next(stores))
        watcher = Watcher(world, store, MONTH)
        late = Interrupted(
            store,
            at=at,
            meanwhile=partial(world.run, store, theirs),
            watch=watcher.look,
            dies=dies,
        )
        if dies:
            with pytest.raises(DiedError):
                world.run(late, ours)
        else:
            world.run(late, ours)
        seen_so_far = watcher.merged
        watcher.look()
        if not dies:
            assert watcher.merged == seen_so_far, "it mends itself what it overwrote"
        merged += watcher.merged
        world.run(store)  # whoever comes next
        check_truth(world, store)
        watcher.look()
    if len(tried) == len(places):
        assert merged > 0, "some files were overwritten late, and readers noticed"


def test_series_consolidator_frozen_at_every_operation_gives_way(world: World) -> None:
    endings = Counter[MonthResult]()
    start = MemoryStore()
    ingest(world.catalog(start), world.config, world.uniform(1))
    recording = Recording(copy_of(start))
    consolidate_month(world.catalog(recording), world.config, 2024, 1)
    for at in range(len(recording.operations)):
        store = copy_of(start)
        late = Interrupted(
            store,
            at=at,
            meanwhile=partial(consolidate_all, world.catalog(store), world.config),
        )
        endings[consolidate_month(world.catalog(late), world.config, 2024, 1).ending] += 1
        world.run(store)
        check_truth(world, store)
    print(f"the late one: {dict(endings)}")
    assert endings[MonthResult.GAVE_WAY] > 5
    assert sum(endings.values()) == len(recording.operations)


@pytest.mark.long
def test_series_two_writers_frozen_at_every_pair_of_operations(world: World) -> None:
    """A freezes, B freezes, C completes; B wakes up, then A. In `make test` a third of all."""
    start = MemoryStore()
    begun(world, start)
    ingest(world.catalog(start), world.config, world.uniform(2))
    newest = world.uniform(3)
    recording = Recording(copy_of(start))
    consolidate_month(world.catalog(recording), world.config, 2024, 1)
    places = range(len(recording.operations))
    for first, second in spread(list(itertools.product(places, repeat=2)), 3):
        store = copy_of(start)
        watcher = Watcher(world, store, MONTH)
        inner = Interrupted(store, at=second, meanwhile=partial(world.run, store, newest))
        middle = partial(consolidate_month, world.catalog(inner), world.config, 2024, 1)
        outer = Interrupted(store, at=first, meanwhile=middle)
        watcher.look()
        consolidate_month(world.catalog(outer), world.config, 2024, 1)
        watcher.look()
        world.run(store)
        check_truth(world, store)
        watcher.look()


def test_series_sweeper_frozen_at_every_operation_spares_a_living_attempt(world: World) -> None:
    """A forced run writes its files to `.tmp/` meanwhile, and is about to commit them."""

    def forced(store: Store) -> None:
        dying = Dying(store, at=operation_of_commit, moment=Moment.BEFORE)
        with pytest.raises(DiedError):
            consolidate_month(world.catalog(dying), world.config, 2024, 1, force=True)

    recording = Recording(begun(world, MemoryStore()))
    consolidate_month(world.catalog(recording), world.config, 2024, 1, force=True)
    commit = ("create", layout.manifest(world.config.month(2024, 1), 5))
    operation_of_commit = recording.operations.index(commit)
    frozen = 0
    for at in itertools.count():
        store = begun(world, MemoryStore())
        late = Interrupted(store, at=at, meanwhile=partial(forced, store))
        consolidate_month(world.catalog(late), world.config, 2024, 1)
        if late.done <= at:
            break
        newest = world.catalog(store).read_consolidation_manifest(world.config.month(2024, 1))
        assert newest is not None
        if newest.number == 4:  # the forced run can still commit
            frozen += 1
            temps = [key for key in objects(store) if "/.tmp/" in key]
            assert len(temps) == len(CODES), f"deleted after being frozen at operation {at}"
    assert frozen > 2


def test_series_tag_never_belongs_to_other_bytes(world: World) -> None:
    """Another writer overwrites a final file while one that is in place already is looked at."""
    month = world.config.month(2024, 1)
    for at in itertools.count():
        store = begun(world, MemoryStore())
        standing = world.catalog(store).read_committed_manifest(month)
        assert standing is not None
        file = standing.files[0]
        final = layout.projection(month, file.series_code)
        late = Interrupted(store, at=at, meanwhile=partial(store.replace, final, b"others"))
        try:
            moved = world.catalog(late).move_series_projection_from_temp(month, file, "gone")
        except LostFileError:
            continue
        if late.done <= at:
            break
        [entry] = entries(store, final)
        assert entry.tag != moved.tag, f"frozen at operation {at}"


def test_series_loser_of_an_ingest_race_leaves_no_part(world: World) -> None:
    ours, theirs = world.uniform(2), world.uniform(3)
    for at in itertools.count():
        store = begun(world, MemoryStore())
        other = partial(ingest, world.catalog(store), world.config, theirs)
        late = Interrupted(store, at=at, meanwhile=other)
        outcome = ingest(world.catalog(late), world.config, ours)
        if late.done <= at:
            break
        log = world.catalog(store).log("little")
        listed = {part.key for number in (1, 2, 3) for part in log.version(number).parts}
        assert {key for key in objects(store) if layout.parse_part(key)} == listed
        if outcome.races:
            assert outcome.version == 3


@pytest.mark.parametrize("seed", range(examples(10)))
def test_series_everyone_at_once_in_a_seeded_order(world: World, seed: int) -> None:
    store = begun(world, MemoryStore())
    turns = Turns.seeded(seed)
    gated = partial(Gated, store, turns)
    watchers = {name: Watcher(world, gated(name), MONTH) for name in ("reader 1", "reader 2")}
    sources = {f"ingester {n}": world.uniform(n) for n in (2, 3, 4)}

    def consolidator(name: str) -> None:
        for _ in range(3):
            consolidate_all(world.catalog(gated(name)), world.config)

    actors: dict[str, Callable[[], object]] = {
        **{name: partial(world.run, gated(name), source) for name, source in sources.items()},
        **{name: partial(consolidator, name) for name in ("consolidator 1", "consolidator 2")},
        **{name: partial(look_often, watcher) for name, watcher in watchers.items()},
    }
    raised = turns.run(actors)
    assert raised == {}, f"seed {seed}"
    world.run(store)
    check_truth(world, store)
    head = world.catalog(store).log("little").head()
    assert head is not None
    assert head.version == 4
    assert min(watcher.reads for watcher in watchers.values()) == 12


@pytest.mark.parametrize("seed", range(examples(16)))
def test_series_everyone_at_once_on_a_bad_day(world: World, seed: int) -> None:
    """Processes die, answers are lost, what was lost lands later; consolidators use force."""
    dice, turns = random.Random(seed), Turns.seeded(seed)
    memory = MemoryStore()
    store = begun(world, memory if seed % 2 else ContentTagged(memory))
    later: list[Callable[[], object]] = []

    def unreliable(name: str) -> Unreliable:
        own = random.Random(f"{seed} {name}")
        return Unreliable(store, turns, name, own, dying=0.01, losing=0.03, later=later)

    def consolidator(name: str) -> None:
        here = unreliable(name)
        for _ in range(3):
            with contextlib.suppress(StoreError):
                force = dice.random() < 0.3
                consolidate_all(world.catalog(here), world.config, force=force)

    def land() -> None:
        for _ in range(40):
            turns.wait("what was lost")
            if later:
                with contextlib.suppress(StoreError, DiedError):
                    later.pop(dice.randrange(len(later)))()

    watchers = {
        name: Watcher(world, Gated(store, turns, name), MONTH) for name in ("reader 1", "reader 2")
    }
    sources = {f"ingester {n}": world.uniform(n) for n in (2, 3, 4)}
    actors: dict[str, Callable[[], object]] = {
        **{name: partial(world.run, unreliable(name), one) for name, one in sources.items()},
        **{name: partial(consolidator, name) for name in ("consolidator 1", "consolidator 2")},
        **{name: partial(look_often, watcher) for name, watcher in watchers.items()},
        "what was lost": land,
    }
    raised = turns.run(actors)
    others = [one for one in raised.values() if not isinstance(one, DiedError | StoreError)]
    assert others == [], f"seed {seed}"
    for do in later:
        with contextlib.suppress(StoreError):
            do()
    world.run(store, world.uniform(9))  # takes the number below which parts may lie
    check_truth(world, store)


def look_often(watcher: Watcher) -> None:
    for _ in range(12):
        watcher.look()


@pytest.mark.parametrize("kind", ["directory", "s3"])
def test_series_real_processes_at_once(
    world: World, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = Place(tmp_path)
    if kind == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        next(s3_stores(server, "processes"))
        place = Place(tmp_path, server.bucket, "series/processes/at-once", server.settings)
    rounds = 8 if kind == "directory" else 3
    world.run(place.store(), world.uniform(1, months=2))
    last = 1 + 2 * rounds
    with nursery() as processes:
        statuses = processes.run(
            (ingest_and_consolidate, (place, 1, range(100, 100 + rounds))),
            (ingest_and_consolidate, (place, 2, range(200, 200 + rounds))),
            (consolidate, (place, 3, 2 * rounds)),
            (consolidate, (place, 4, 2 * rounds)),
            (watch, (place, 5, last)),
            (watch, (place, 6, last)),
        )
    assert statuses == [0] * 6
    store = place.store()
    world.run(store)
    check_truth(world, store)
    reads = [path.read_text() for path in sorted(tmp_path.glob("reads-*"))]
    endings = Counter(
        line for path in tmp_path.glob("endings-*") for line in path.read_text().split("\n")
    )
    print(f"{kind}: months read and merged from events: {reads}; consolidators: {dict(endings)}")
