"""A writer killed between any two system calls leaves nothing, or the whole object.

The crash is part of the input: a forked child runs an operation and kills itself before its n-th
system call, for every n; then the store is opened again and looked at.
"""

import os
import random
import signal
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from tests.harness.killing import kill_before_call

from caudal.errors import NotFoundError
from caudal.store import DirectoryStore, entries, temporaries

BYTES = b"0123456789" * 250_000  # several pieces, so that there are crashes between writes
KEY = "a/b/c/key"
Operation = Callable[[DirectoryStore], object]


def crashed(root: Path, operation: Operation, number: int) -> bool:
    """Run it in a child that dies before its n-th call; False if it made fewer and ended well."""
    child = os.fork()
    if child == 0:
        try:
            store = DirectoryStore(root)
            kill_before_call(number)
            operation(store)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def crashes(root: Path, operation: Operation, prepare: Operation) -> list[DirectoryStore]:
    """A store per crash point, each as the crash left it."""
    left: list[DirectoryStore] = []
    while True:
        path = root / f"{len(left)}"
        prepare(DirectoryStore(path, fsync=False))
        if not crashed(path, operation, len(left)):
            return left
        left.append(DirectoryStore(path, fsync=False))


def content(store: DirectoryStore) -> bytes | None:
    try:
        return store.read(KEY)
    except NotFoundError:
        return None


def assert_clean_after_sweep(store: DirectoryStore) -> None:
    store.sweep(0)
    store.delete(KEY)
    assert [path for path in store._root.rglob("*") if path.name != temporaries.FOLDER] == []


@pytest.fixture(params=[True, False], ids=["nameless", "named"])
def _ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to write a temporary file."""
    if not request.param:
        monkeypatch.setattr(temporaries, "nameless_files_work", lambda _: False)


@pytest.mark.usefixtures("_ways")
def test_a_create_killed_anywhere(tmp_path: Path) -> None:
    stores = crashes(tmp_path, lambda store: store.create(KEY, BYTES), lambda store: None)
    found = [content(store) for store in stores]
    assert set(found) == {None, BYTES}, "crashes before and after the link"
    assert len(stores) > 15
    for store in stores:
        store.create(KEY, BYTES)
        assert store.read(KEY) == BYTES
        assert_clean_after_sweep(store)


@pytest.mark.usefixtures("_ways")
def test_a_repeated_create_killed_anywhere(tmp_path: Path) -> None:
    def prepare(store: DirectoryStore) -> None:
        store.create(KEY, b"the winner's")

    for store in crashes(tmp_path, prepare, prepare):
        assert content(store) == b"the winner's"
        assert_clean_after_sweep(store)


def test_a_replace_killed_anywhere(tmp_path: Path) -> None:
    def prepare(store: DirectoryStore) -> None:
        store.replace(KEY, b"old")

    stores = crashes(tmp_path, lambda store: store.replace(KEY, BYTES), prepare)
    assert {content(store) for store in stores} == {b"old", BYTES}
    for store in stores:
        store.replace(KEY, b"newest")
        assert content(store) == b"newest"
        assert_clean_after_sweep(store)


@pytest.mark.parametrize("old", [None, b"old", BYTES], ids=["free", "taken", "taken by the same"])
def test_a_replace_by_a_twin_killed_anywhere(tmp_path: Path, old: bytes | None) -> None:
    def prepare(store: DirectoryStore) -> None:
        store.create("twin", BYTES)
        if old is not None:
            store.replace(KEY, old, twin="twin" if old == BYTES else None)

    def replace(store: DirectoryStore) -> None:
        store.replace(KEY, BYTES, twin="twin")

    stores = crashes(tmp_path, replace, prepare)
    assert {content(store) for store in stores} == {old, BYTES}
    for store in stores:
        replace(store)
        store.delete("twin")
        assert content(store) == BYTES
        assert_clean_after_sweep(store)


def test_a_delete_killed_anywhere(tmp_path: Path) -> None:
    def prepare(store: DirectoryStore) -> None:
        store.create(KEY, BYTES)

    stores = crashes(tmp_path, lambda store: store.delete(KEY), prepare)
    assert {content(store) for store in stores} == {None, BYTES}
    for store in stores:
        store.create("a/b/other", b"leftover folders are not in the way")
        store.delete("a/b/other")
        assert_clean_after_sweep(store)


def test_kills_at_random_moments_lose_nothing_acknowledged(tmp_path: Path) -> None:
    dice = random.Random(4)
    for round_ in range(12):
        acknowledged = _killed_writer(tmp_path, round_, dice.uniform(0.005, 0.05))
        store = DirectoryStore(tmp_path)
        found = {entry.key for entry in entries(store, f"{round_}/")}
        assert acknowledged <= found
        assert all(store.read(key) == key.encode() * 5_000 for key in found)
        store.sweep(0)
    assert not list((tmp_path / temporaries.FOLDER).iterdir())


def _killed_writer(root: Path, round_: int, seconds: float) -> set[str]:
    """The keys whose create had returned when the writer was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _write_for_ever(DirectoryStore(root), round_, writing)
        finally:
            os._exit(1)
    os.close(writing)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        return set(pipe.read().decode().split())


def _write_for_ever(store: DirectoryStore, round_: int, acknowledge: int) -> None:
    for number in count():
        key = f"{round_}/{number % 7}/{number}"
        store.create(key, key.encode() * 5_000)
        os.write(acknowledge, f"{key}\n".encode())
