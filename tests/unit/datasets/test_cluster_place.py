"""Datasets of a cluster: who finds which."""

from typing import Any

import pytest
from tests.harness.datasets import append, new_dataset

from caudal.datasets.cluster_place import (
    MOST_LISTED,
    MOST_READERS,
    MOST_SHARED,
    ClusterDataset,
    datasets_of,
    find,
    locate,
    shared_with,
    sweep_all_deleted,
)
from caudal.errors import NotFoundError, UsageError
from caudal.store import MemoryStore, Store
from caudal.store.port import Page, entries


def made(store: Store, owner: str, name: str, *numbers: int) -> ClusterDataset:
    found = locate(store, owner, name)
    append(found.below, new_dataset(found.below), *numbers)
    return found


class CountingStore(MemoryStore):
    """Counts what it is asked."""

    asked = 0

    def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        self.asked += 1
        return super().read(key, start, length)

    def list(self, prefix: str, **how: Any) -> Page:
        self.asked += 1
        return super().list(prefix, **how)


def names(found: object) -> list[str]:
    return [f"{one.owner}/{one.name}" for one in found]  # type: ignore[attr-defined]


def test_a_dataset_is_found_by_its_owner_only() -> None:
    store = MemoryStore()
    made(store, "ana", "shelf", 1)
    assert find(store, "ana", "shelf").contents().number == 1
    assert find(store, "ana", "ana/shelf").root == "datasets/ana/shelf/000000/"
    for who, place in (("ben", "shelf"), ("ben", "ana/shelf"), ("ana", "other")):
        with pytest.raises(NotFoundError, match=f"there is no dataset {place} that you may read"):
            find(store, who, place)


def test_a_reader_finds_it_until_it_is_unshared() -> None:
    store = MemoryStore()
    shelf = made(store, "ana", "shelf", 1)
    shelf.share("ben")
    shelf.share("ben")
    assert shelf.readers() == ["ben"]
    assert find(store, "ben", "ana/shelf") == shelf
    assert names(shared_with(store, "ben").listed) == ["ana/shelf"]
    assert names(datasets_of(store, "ben")) == []
    assert shelf.unshare("ben")
    assert not shelf.unshare("ben")
    assert not shelf.may_read("ben")
    assert names(shared_with(store, "ben").listed) == []


def test_the_index_is_never_believed() -> None:
    store = MemoryStore()
    made(store, "ana", "shelf", 1)
    store.create("shared/ben/ana/shelf/000000", b"{}")
    assert names(shared_with(store, "ben").listed) == []


def test_a_dataset_has_a_bounded_number_of_readers() -> None:
    shelf = made(MemoryStore(), "ana", "shelf", 1)
    for number in range(MOST_READERS):
        shelf.share(f"reader{number}")
    with pytest.raises(UsageError, match="shelf has 100 readers, and no more are possible"):
        shelf.share("ben")
    assert not shelf.may_read("ben")
    shelf.share("reader7")  # reads it already
    shelf.unshare("reader7")
    shelf.share("ben")
    assert shelf.may_read("ben")


def test_an_owner_shares_a_bounded_number_of_datasets_with_another() -> None:
    store = MemoryStore()
    shelves = [made(store, "ana", f"shelf{number}", 1) for number in range(MOST_SHARED + 1)]
    for shelf in shelves[:-1]:
        shelf.share("ben")
    with pytest.raises(UsageError, match="you share 100 datasets with ben, and no more are"):
        shelves[-1].share("ben")
    assert not shelves[-1].may_read("ben")
    shelves[-1].share("eva")
    shelves[0].delete()
    shelves[-1].share("ben")


def share_unbounded(store: Store, owner: str, reader: str, count: int) -> None:
    """Share as the previous version does."""
    for number in range(count):
        store.create(f"datasets/{owner}/shelf{number:04}/000000/readers/{reader}", b"{}")
        store.create(f"shared/{reader}/{owner}/shelf{number:04}/000000", b"{}")


def test_a_list_of_what_others_share_is_bounded_and_fair() -> None:
    store = CountingStore()
    share_unbounded(store, "ana", "eva", 3000)
    share_unbounded(store, "ben", "eva", 2)
    store.asked = 0
    found = shared_with(store, "eva")
    assert len(found.listed) == MOST_LISTED
    assert found.more
    assert names(found.listed) == sorted(names(found.listed))
    assert names(found.listed)[-2:] == ["ben/shelf0000", "ben/shelf0001"]
    assert store.asked <= 3 * MOST_LISTED
    assert not shared_with(store, "zoe").more


def test_what_the_index_says_wrongly_takes_no_place_of_other_owners() -> None:
    store = MemoryStore()
    for number in range(3 * MOST_LISTED):
        store.create(f"shared/eva/ana/gone{number}/000000", b"{}")
    made(store, "ben", "shelf", 1).share("eva")
    assert names(shared_with(store, "eva").listed) == ["ben/shelf"]


def test_the_index_of_a_deletion_that_was_killed_is_swept() -> None:
    store = MemoryStore()
    made(store, "ana", "shelf", 1).share("ben")
    store.create("datasets/ana/shelf/000000.deleted", b"{}")
    sweep_all_deleted(store)
    assert [one.key for one in entries(store, "")] == ["datasets/ana/shelf/000000.deleted"]


def test_what_is_deleted_does_not_come_back() -> None:
    store = MemoryStore()
    old = made(store, "ana", "shelf", 1)
    old.share("ben")
    old.delete()
    assert names(datasets_of(store, "ana")) == []
    assert [one.key for one in entries(store, "")] == ["datasets/ana/shelf/000000.deleted"]
    new = made(store, "ana", "shelf", 2, 3)
    assert new.generation == 1
    append(old.below, new_dataset(old.below), 7)  # a load that was frozen
    assert [one.rows for one in find(store, "ana", "shelf").contents().tables["numbers"]] == [2]
    assert not new.may_read("ben")
    assert sweep_all_deleted(store) > 0
    assert not list(entries(store, old.root))
    assert new.exists()


def test_a_deletion_that_was_killed_is_one() -> None:
    store = MemoryStore()
    made(store, "ana", "shelf", 1)
    store.create("datasets/ana/shelf/000000.deleted", b"{}")
    assert names(datasets_of(store, "ana")) == []


@pytest.mark.parametrize("name", ["", "..", "a/b/c", ".x", "a b", "x" * 65, "a\n", "é"])
def test_a_name_cannot_lead_elsewhere(name: str) -> None:
    store = MemoryStore()
    with pytest.raises(UsageError):
        locate(store, "ana", name)
    with pytest.raises(UsageError):
        locate(store, name, "shelf")
    with pytest.raises(UsageError):
        find(store, "ana", f"{name}/shelf")


def test_the_owner_is_no_reader() -> None:
    with pytest.raises(UsageError, match="ana owns shelf"):
        made(MemoryStore(), "ana", "shelf").share("ana")
