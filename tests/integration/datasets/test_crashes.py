"""Kills at every store operation of load, compact and vacuum; others that come in between.

Whatever happens, these hold: every version names only files that are there and whole; every Delta
log agrees with its version; a reader sees all rows of a load or none; when the same command is
repeated, every row is there once.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.harness.misbehaving_stores import Around, DiedError, Dying, Moment, Result
from tests.harness.shelves import ask_sales, load_files, sales_loader, write_sales, write_shops

from caudal.datasets import keys
from caudal.datasets.commits import open_contents, read_version
from caudal.datasets.compaction import compact
from caudal.datasets.contents import Contents
from caudal.datasets.delta import delta_commit
from caudal.datasets.files import read_file
from caudal.datasets.parquet import read_rows
from caudal.datasets.shelf import Shelf
from caudal.datasets.vacuum import vacuum
from caudal.embedded.dataset_load import DatasetLoader
from caudal.errors import NotFoundError
from caudal.store import MemoryStore
from caudal.store.port import Store, entries

PLACE = "memory:"
FAR = 10.0**9  # seconds: long after everything

Act = Callable[[Store], object]


@dataclass
class Visited(Around):
    """Lets somebody else act before one operation, counted from 0."""

    at: int = 0
    act: Callable[[], object] = field(default=lambda: None)
    done: int = 0

    def operate(self, name: str, key: str, do: Callable[[], Result]) -> Result:
        here, self.done = self.done == self.at, self.done + 1
        if here:
            self.act()
        return do()


class AtOnce(ThreadPoolExecutor):
    """A pool without threads: work is done when it is submitted, always in the same order."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **more))
        except BaseException as error:
            done.set_exception(error)
        return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sales")
    write_shops(folder)
    for number in range(4):
        write_sales(folder, f"s{number}.csv", range(10 * number, 10 * number + 5))
    return folder


@pytest.fixture(scope="module")
def loader() -> Iterator[DatasetLoader]:
    with sales_loader(MemoryStore(), PLACE) as found:
        yield found


class World:
    """One store, and everything that people do to it."""

    def __init__(self, loader: DatasetLoader, folder: Path) -> None:
        self.store = MemoryStore()
        self._loader, self._folder = loader, folder

    def load(self, *files: str) -> Act:
        def act(store: Store) -> object:
            tools = replace(self._loader.tools, store=store, pool=AtOnce())
            loader = DatasetLoader(self._loader.app, PLACE, tools, lambda: 100.0)
            return load_files(loader, self._folder, sales=files, shops=["shops.csv"])

        return act

    def compact(self, store: Store) -> Contents:
        return compact(store, 200.0)

    def vacuum(self, store: Store) -> object:
        return vacuum(store, FAR, keep=0.0, grace=0.0)

    def operations(self, act: Act) -> int:
        """How many operations it takes, from a copy of the store as it is."""
        counting = Visited(self.copy(), at=-1)
        act(counting)
        return counting.done

    def copy(self) -> MemoryStore:
        other = MemoryStore()
        for entry in entries(self.store, ""):
            other.create(entry.key, self.store.read(entry.key))
        return other

    def restore(self, saved: MemoryStore) -> None:
        self.store = MemoryStore()
        for entry in entries(saved, ""):
            self.store.create(entry.key, saved.read(entry.key))


@pytest.fixture
def world(loader: DatasetLoader, folder: Path) -> World:
    return World(loader, folder)


def sales(store: Store) -> list[int]:
    """All sales of the newest version in their order; checks every version on the way."""
    try:
        newest = open_contents(store)
    except NotFoundError:
        return []
    for number in range(newest.number + 1):
        version = read_version(store, number)
        for table in newest.tables:
            try:
                log = store.read(keys.delta_key(table, number))
            except NotFoundError:
                assert number == newest.number, "a log is more than one version behind"
            else:
                assert log == delta_commit(version, table)
    parts = [read_file(store, "sales", file) for file in newest.tables["sales"]]
    for file in newest.tables["rejects"] + newest.tables["shops"]:
        read_file(store, "rejects" if file in newest.tables["rejects"] else "shops", file)
    ids: list[int] = read_rows(parts)["id"].to_pylist() if parts else []
    return ids


def expected(*numbers: int) -> list[int]:
    return [10 * number + n for number in numbers for n in range(5)]


def kills(world: World, act: Act) -> Iterator[None]:
    """Let `act` die at every operation, before or after it, each time from the same store."""
    start = world.copy()
    for at in range(world.operations(act)):
        for moment in Moment:
            world.restore(start)
            with pytest.raises(DiedError):
                act(Dying(world.store, at=at, moment=moment))
            yield


def test_a_first_load_killed_anywhere_is_finished_by_the_same_command(world: World) -> None:
    act = world.load("s0.csv", "s1.csv")
    for _ in kills(world, act):
        assert sales(world.store) in ([], expected(0, 1))
        act(world.store)
        assert sales(world.store) == expected(0, 1)
        world.vacuum(world.store)
        assert sales(world.store) == expected(0, 1)
        assert list(entries(world.store, keys.LOADS)) == []


def test_a_load_killed_anywhere_is_finished_by_the_same_command(world: World) -> None:
    world.load("s0.csv")(world.store)
    act = world.load("s1.csv", "s2.csv")
    for _ in kills(world, act):
        assert sales(world.store) in (expected(0), expected(0, 1, 2))
        act(world.store)
        assert sales(world.store) == expected(0, 1, 2)


def test_a_compaction_killed_anywhere_changes_no_row(world: World) -> None:
    for name in ("s0.csv", "s1.csv", "s2.csv"):
        world.load(name)(world.store)
    for _ in kills(world, world.compact):
        assert sales(world.store) == expected(0, 1, 2)
        world.compact(world.store)
        assert sales(world.store) == expected(0, 1, 2)
        assert len(open_contents(world.store).tables["sales"]) == 1


def test_a_vacuum_killed_anywhere_loses_nothing_and_is_finished_later(world: World) -> None:
    for name in ("s0.csv", "s1.csv"):
        world.load(name)(world.store)
    world.compact(world.store)
    for _ in kills(world, world.vacuum):
        assert sales(world.store) == expected(0, 1)
        world.vacuum(world.store)
        assert sales(world.store) == expected(0, 1)
        files = [one for one in entries(world.store, keys.TABLES) if one.key.endswith(".parquet")]
        held = open_contents(world.store).tables.values()
        assert len(files) == sum(map(len, held))


def meet(world: World, one: Act, other: Act) -> Iterator[None]:
    """Let `other` act before every operation of `one`, each time from the same store."""
    start = world.copy()
    for at in range(world.operations(one)):
        world.restore(start)
        one(Visited(world.store, at=at, act=lambda: other(world.store)))
        yield


def test_two_people_load_at_once(world: World) -> None:
    for _ in meet(world, world.load("s0.csv"), world.load("s1.csv")):
        assert sorted(sales(world.store)) == expected(0, 1)


def test_two_people_load_the_same_file_at_once(world: World) -> None:
    world.load("s0.csv")(world.store)
    for _ in meet(world, world.load("s1.csv", "s2.csv"), world.load("s2.csv")):
        assert sorted(sales(world.store)) == expected(0, 1, 2)


def test_three_people_load_at_once(world: World) -> None:
    def second(store: Store) -> None:
        third = world.load("s2.csv", "s0.csv")
        world.load("s1.csv")(Visited(store, at=6, act=lambda: third(world.store)))

    for _ in meet(world, world.load("s0.csv", "s3.csv"), second):
        assert sorted(sales(world.store)) == expected(0, 1, 2, 3)


def test_a_vacuum_meets_a_load_that_goes_on_with_old_files(world: World) -> None:
    """Files of the killed load look old to the vacuum, and the same load is about to use them."""
    world.load("s0.csv")(world.store)
    act = world.load("s1.csv", "s2.csv")
    with pytest.raises(DiedError):
        act(Dying(world.store, at=world.operations(act) - 12))
    for _ in meet(world, act, world.vacuum):
        assert sales(world.store) == expected(0, 1, 2)
    for _ in meet(world, world.vacuum, act):
        assert sales(world.store) == expected(0, 1, 2)


def test_compactions_meet_loads_and_vacuums(world: World) -> None:
    for name in ("s0.csv", "s1.csv"):
        world.load(name)(world.store)
    start = world.copy()
    for one, other, numbers in [
        (world.compact, world.load("s2.csv"), (0, 1, 2)),
        (world.load("s2.csv"), world.compact, (0, 1, 2)),
        (world.compact, world.vacuum, (0, 1)),
        (world.compact, world.compact, (0, 1)),
    ]:
        world.restore(start)
        for _ in meet(world, one, other):
            assert sales(world.store) == expected(*numbers)


def test_a_reader_of_a_version_is_not_disturbed(world: World) -> None:
    """Others load and compact while it opens and reads; it sees a version, whole."""
    world.load("s0.csv")(world.store)
    seen = []

    def read(store: Store) -> None:
        shelf = Shelf(PLACE, store, open_contents(store))
        seen.append(ask_sales(shelf)[0]["sales"])

    def others(store: Store) -> None:
        world.load("s1.csv")(store)
        world.compact(store)

    for _ in meet(world, read, others):
        assert seen.pop() in (5, 10)
