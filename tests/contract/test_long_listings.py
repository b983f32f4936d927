"""Listings longer than what a server gives at once, of names that servers put in other orders."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

import pytest

from caudal.store import Store, entries

CHARACTERS = "ab-.0~é😀 +%"
KEYS = 2_500
WRITERS = 4


@dataclass(frozen=True)
class Crowd:
    """A store and all of its keys, in order."""

    store: Store
    keys: list[str]


@pytest.fixture(scope="module")
def crowd(new_store: Callable[[], Store]) -> Crowd:
    crowd = Crowd(new_store(), nasty_keys(random.Random(7), KEYS))
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda key: crowd.store.create(key, key.encode()), crowd.keys))
    return crowd


def nasty_keys(chance: random.Random, count: int) -> list[str]:
    """Names on both sides of `/` in the order, short enough to begin each other."""
    found: set[str] = set()
    folders: set[str] = set()
    while len(found) < count:
        names = [nasty_name(chance) for _ in range(chance.randint(1, 4))]
        key, above = "/".join(names), {"/".join(names[:end]) for end in range(1, len(names))}
        if key not in folders and not above & found:
            found.add(key)
            folders |= above
    return sorted(found)


def nasty_name(chance: random.Random) -> str:
    name = "".join(chance.choices(CHARACTERS, k=chance.randint(1, 3)))
    return "a" if name in {".", ".."} else name


@pytest.mark.one_in(2)
def test_every_key_is_listed_once_and_in_order(crowd: Crowd) -> None:
    listed = list(entries(crowd.store, ""))
    assert [entry.key for entry in listed] == crowd.keys
    assert [entry.size for entry in listed] == [len(key.encode()) for key in crowd.keys]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("limit", [999, 1000, 1001])
def test_pages_follow_each_other(crowd: Crowd, limit: int) -> None:
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = crowd.store.list("", after=after, limit=limit)
        found += [entry.key for entry in page.entries]
        after = page.last
    assert found == crowd.keys


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
def test_a_page_is_a_slice_of_the_keys(crowd: Crowd, seed: int) -> None:
    chance = random.Random(seed)
    limit, some = chance.randint(1, 60), chance.choice(crowd.keys)
    after = chance.choice(["", some, f"{some[:-1]}0", chance.choice(crowd.keys)])
    for prefix in ("", some[: some.find("/") + 1], some[: some.rfind("/") + 1], some[:1]):
        wanted = [key for key in crowd.keys if key.startswith(prefix) and key > after]
        page = crowd.store.list(prefix, after=after, limit=limit)
        assert [entry.key for entry in page.entries] == wanted[:limit]
        assert page.last == (wanted[limit - 1] if len(wanted) > limit else None)


def test_keys_that_stay_are_listed_while_others_come_and_go(crowd: Crowd) -> None:
    """Beside them, in their folders, and in folders that come and go too."""
    done = Event()

    def come_and_go(writer: int) -> None:
        chance = random.Random(writer)
        while not done.is_set():
            folder = chance.choice(crowd.keys).rpartition("/")[0]
            way = chance.choice([f"{folder}/" if folder else "", f"folder {writer}/"])
            key = f"{way}{nasty_name(chance)} brief {writer}"
            crowd.store.create(key, b"")
            crowd.store.delete(key)

    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(come_and_go, writer) for writer in range(WRITERS)]
        try:
            for _ in range(3):
                listed = [entry.key for entry in entries(crowd.store, "")]
                assert listed == sorted(set(listed))
                assert [key for key in listed if " brief " not in key] == crowd.keys
        finally:
            done.set()
    for writer in writers:
        writer.result()
