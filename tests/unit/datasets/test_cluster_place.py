"""Datasets of a cluster: who finds which."""

import pytest
from tests.harness.datasets import append, new_dataset

from caudal.datasets.cluster_place import (
    ClusterDataset,
    datasets_of,
    find,
    locate,
    shared_with,
    sweep_all_deleted,
)
from caudal.errors import NotFoundError, UsageError
from caudal.store import MemoryStore, Store
from caudal.store.port import entries


def made(store: Store, owner: str, name: str, *numbers: int) -> ClusterDataset:
    found = locate(store, owner, name)
    append(found.below, new_dataset(found.below), *numbers)
    return found


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
    assert names(shared_with(store, "ben")) == ["ana/shelf"]
    assert names(datasets_of(store, "ben")) == []
    assert shelf.unshare("ben")
    assert not shelf.unshare("ben")
    assert not shelf.may_read("ben")
    assert names(shared_with(store, "ben")) == []


def test_the_index_is_never_believed() -> None:
    store = MemoryStore()
    made(store, "ana", "shelf", 1)
    store.create("shared/ben/ana/shelf/000000", b"{}")
    assert names(shared_with(store, "ben")) == []


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
