"""Stores that break the first promise are found out and refused."""

import os
import time
from pathlib import Path
from threading import Barrier, current_thread, main_thread

import pytest
from tests.harness.misbehaving_stores import Failing, Moment, Recording

from caudal.errors import AlreadyExistsError, NotFoundError, StoreError, UsageError
from caudal.store import MemoryStore, require_conditional_create


class Overwriting(MemoryStore):
    """Ignores `If-None-Match`, as rclone, juicefs and s3rver do."""

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        self.replace(key, data)


class OverwritingSecretly(MemoryStore):
    """Refuses the second create, but only after it has overwritten the first."""

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        taken = bool(self._objects.get(key))
        self.replace(key, data)
        if taken:
            raise AlreadyExistsError(key)


class LookingBeforeWriting(MemoryStore):
    """Checks, then writes: right one after the other, wrong at the same moment (Swift's s3api)."""

    def __init__(self) -> None:
        super().__init__()
        self.checked = Barrier(4)

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        try:
            self.read(key)
        except NotFoundError:
            if not key.endswith("/0"):
                self.checked.wait()
            self.replace(key, data)
        else:
            raise AlreadyExistsError(key)


class Counting(MemoryStore):
    created = 0

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        self.created += 1
        super().create(key, data, lasting=lasting)


class Away(MemoryStore):
    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        raise StoreError("away")


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (Overwriting(), "let a second create overwrite the first"),
        (OverwritingSecretly(), "overwrote the first object"),
        (LookingBeforeWriting(), "4 of 4 simultaneous creates succeeded"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_store_that_breaks_the_promise_is_refused(store: MemoryStore, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        require_conditional_create(store)
    assert "If-None-Match" in str(caught.value)
    assert not store._objects


def test_a_store_that_is_away_is_not_called_a_liar() -> None:
    with pytest.raises(StoreError, match="away"):
        require_conditional_create(Away())


def deleted_by_a_probe_of(failing: Failing) -> tuple[Recording, list[str]]:
    """The store as the probe asked it, and the numbers of the objects that it deleted."""
    store = Recording(failing)
    with pytest.raises(StoreError, match="injected"):
        require_conditional_create(store)
    names = [key for name, key in store.operations if name == "delete"]
    return store, [name.rpartition("/")[2] for name in names]


def test_a_store_that_is_away_is_asked_once() -> None:
    failing = Failing(MemoryStore(), when=lambda name, key: True, error=StoreError)
    store, deleted = deleted_by_a_probe_of(failing)
    assert deleted == []
    assert [name for name, _ in store.operations] == ["create"]


@pytest.mark.parametrize(
    ("number", "moment", "deleted", "left"),
    [
        ("0", Moment.BEFORE, [], 0),
        ("0", Moment.AFTER, [], 1),  # it was created, and nobody knows
        ("2", Moment.BEFORE, ["0", "1"], 0),
        ("2", Moment.AFTER, ["0", "1", "2"], 0),  # losers of the race were told that it exists
    ],
)
def test_only_what_was_certainly_created_is_deleted(
    number: str, moment: Moment, deleted: list[str], left: int
) -> None:
    def chosen(name: str, key: str) -> bool:
        return name == "create" and key.endswith(f"/{number}")

    objects = MemoryStore()
    failing = Failing(objects, when=chosen, error=StoreError, moment=moment)
    assert deleted_by_a_probe_of(failing)[1] == deleted
    assert len(objects._objects) == left
    assert all(key.startswith(".caudal-probe/") for key in objects._objects)


def test_a_store_that_goes_away_is_asked_to_delete_once() -> None:
    def away(name: str, key: str) -> bool:
        return name == "delete" or key.endswith("/3")

    _, deleted = deleted_by_a_probe_of(Failing(MemoryStore(), when=away, error=StoreError))
    assert deleted == ["0"]


def test_a_race_that_hangs_keeps_no_process_from_ending() -> None:
    """Threads that are no daemons are joined when Python ends."""
    racing = []

    class Watched(MemoryStore):
        def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
            racing.append(current_thread())
            super().create(key, data, lasting=lasting)

    require_conditional_create(Watched())
    assert all(one.daemon for one in racing if one is not main_thread())
    assert len(set(racing)) > 4


def test_a_good_store_passes_and_is_left_as_it_was() -> None:
    store = MemoryStore()
    store.create("key", b"bytes")
    require_conditional_create(store)
    assert list(store._objects) == ["key"]


def test_races_that_were_won_are_noted_and_not_run_again(tmp_path: Path) -> None:
    passed, store = tmp_path / "passed", Counting()
    require_conditional_create(store, passed)
    races = store.created
    assert passed.exists()
    require_conditional_create(store, passed)
    assert store.created - races == 2 < races
    with pytest.raises(UsageError, match="overwrite the first"):
        require_conditional_create(Overwriting(), passed)  # tested at every start
    assert not store._objects


@pytest.mark.parametrize("hours", [25, -1], ids=["of yesterday", "of a clock set back"])
def test_races_are_run_again_after_a_day(hours: int, tmp_path: Path) -> None:
    passed, store = tmp_path / "passed", Counting()
    passed.touch()
    then = time.time() - hours * 3600
    os.utime(passed, (then, then))
    require_conditional_create(store, passed)
    assert store.created > 2
    races = store.created
    require_conditional_create(store, passed)
    assert store.created - races == 2, "noted anew"


@pytest.mark.parametrize("store", [LookingBeforeWriting(), Away()], ids=["liar", "away"])
def test_races_that_were_not_won_are_not_noted(store: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises((UsageError, StoreError)):
        require_conditional_create(store, tmp_path / "passed")
    assert not any(tmp_path.iterdir())


def test_a_note_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    require_conditional_create(MemoryStore(), tmp_path / "no folder" / "passed")


def test_memory_refuses_a_key_that_is_a_folder() -> None:
    store = MemoryStore()
    store.create("a/b", b"")
    for key in ("a", "a/b/c", "a/b/c/d"):
        with pytest.raises(StoreError, match="an object and a folder"):
            store.create(key, b"")
    store.create("a/b-c", b"")
