"""The directory store on a bad day: a full disk, leftovers, objects where folders should be."""

import errno
import fcntl
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caudal.errors import AlreadyExistsError, StoreError, StoreFullError
from caudal.store import DirectoryStore, entries, temporaries


@pytest.fixture(params=[True, False], ids=["nameless", "named"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> DirectoryStore:
    if not request.param:
        monkeypatch.setattr(temporaries, "nameless_files_work", lambda _: False)
    return DirectoryStore(tmp_path / "store", fsync=False)


def failing(number: int) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("call", "number", "words"),
    [
        ("write", errno.ENOSPC, "the disk is full"),
        ("write", errno.EDQUOT, "quota"),
        ("fsync", errno.EIO, "Input/output error"),
        ("link", errno.EROFS, "read-only"),
        ("open", errno.EACCES, "permission denied"),
        ("mkdir", errno.ENOSPC, "the disk is full"),
    ],
)
def test_an_error_of_the_disk_is_one_clear_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, words: str
) -> None:
    store = DirectoryStore(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(number))
        with pytest.raises(StoreError, match=words) as caught:
            store.create("a/key", b"bytes")
    assert "\n" not in str(caught.value)
    assert "a/key" in str(caught.value)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    store.create("a/key", b"bytes")


def test_a_disk_that_fills_within_an_object(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, room = os.write, [3]

    def until_full(descriptor: int, piece: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        room[0] -= 1
        return write(descriptor, memoryview(piece)[:100])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", until_full)
        with pytest.raises(StoreFullError, match="full"):
            store.create("key", b"x" * 1000)
        with pytest.raises(StoreError, match="full"):
            store.replace("key", b"x" * 1000)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_short_writes_are_continued(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda to, piece: write(to, memoryview(piece)[:7]))
    store.create("key", b"0123456789" * 10)
    assert store.read("key") == b"0123456789" * 10


def test_an_object_cannot_be_a_folder_too(store: DirectoryStore) -> None:
    store.create("a/b", b"bytes")
    with pytest.raises(StoreError, match="an object, not a folder"):
        store.create("a/b/c", b"bytes")
    for write in (store.create, store.replace):
        with pytest.raises(StoreError, match="a folder of other objects"):
            write("a", b"bytes")
    assert [entry.key for entry in entries(store, "")] == ["a/b"]


def test_foreign_files_are_not_listed(store: DirectoryStore, tmp_path: Path) -> None:
    store.create("key", b"bytes")
    (tmp_path / "store" / "not\na key").touch()
    (tmp_path / "store" / os.fsdecode(b"\xff")).touch()
    assert [entry.key for entry in entries(store, "")] == ["key"]


def test_a_store_whose_folder_is_gone_says_so(store: DirectoryStore, tmp_path: Path) -> None:
    for path in sorted((tmp_path / "store").rglob("*"), reverse=True):
        path.rmdir()
    (tmp_path / "store").rmdir()
    with pytest.raises(StoreError, match="is gone"):
        store.create("key", b"bytes")


def test_folders_made_by_others_are_used(store: DirectoryStore, tmp_path: Path) -> None:
    """Another process's clean-up removed our open folder, a third made it anew."""
    store.create("a/b/first", b"1")
    other = DirectoryStore(tmp_path / "store", fsync=False)
    other.delete("a/b/first")
    other.create("a/b/second", b"2")
    store.create("a/b/third", b"3")
    assert [entry.key for entry in entries(other, "")] == ["a/b/second", "a/b/third"]
    with pytest.raises(AlreadyExistsError):
        other.create("a/b/third", b"4")


def test_open_folders_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a quarter of the files that the process may open."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (400, 4000))
    store = DirectoryStore(tmp_path, fsync=False)
    began = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for number in range(300):
        store.create(f"{number}/key", b"bytes")
    assert 90 <= len(os.listdir("/proc/self/fd")) - began <= 110  # noqa: PTH208


def test_a_twin_is_named_again_although_its_temporary_name_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, rename, swept = DirectoryStore(tmp_path, fsync=False), os.rename, list[int]()
    store.create("twin", b"bytes")
    store.replace("key", b"older")

    def rename_late(*arguments: Any, **options: Any) -> None:
        if not swept:
            swept.append(store.sweep(0))
        rename(*arguments, **options)

    monkeypatch.setattr(os, "rename", rename_late)
    store.replace("key", b"bytes", twin="twin")
    assert swept == [1]
    assert store.read("key") == b"bytes"
    assert not list((tmp_path / temporaries.FOLDER).iterdir())


def leftover(root: Path, name: str, age_seconds: float) -> Path:
    path = root / temporaries.FOLDER / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"half")
    then = path.stat().st_mtime - age_seconds
    os.utime(path, (then, then))
    return path


@pytest.mark.parametrize("ahead", [-90_000, 90_000])
def test_objects_are_dated_by_the_clock_of_the_file_system(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    now = time.time_ns()
    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: now + ahead * 1_000_000_000)
        store.create("a", b"bytes")
    (entry,) = store.list("").entries
    assert abs(entry.modified - store.time()) < 60.0


@pytest.mark.parametrize("ahead", [-90_000.0, 90_000.0])
def test_sweep_spares_new_probes_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    store, now = DirectoryStore(tmp_path), time.time()
    store.create(".caudal-probe/alive/0", b"first")
    monkeypatch.setattr(time, "time", lambda: now + ahead)
    assert store.sweep(1_000) == 0


def test_sweep_removes_old_leftovers_of_dead_writers(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    old, young = leftover(tmp_path, "old", 100), leftover(tmp_path, "young", 10)
    assert store.sweep(50) == 1
    assert (old.exists(), young.exists()) == (False, True)
    assert store.sweep(0) == 1


def test_sweep_removes_what_killed_probes_left(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    for key in (".caudal-probe/killed/0", ".caudal-probe/alive/0"):
        store.create(key, b"first")
    old = tmp_path / ".caudal-probe/killed/0"
    os.utime(old, (0, 0))
    assert store.sweep(1_000) == 1
    assert [path.parent.name for path in tmp_path.glob(".caudal-probe/*/0")] == ["alive"]


def test_sweep_spares_living_writers_however_old(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    with leftover(tmp_path, "held", 1_000).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert store.sweep(0) == 0
    assert store.sweep(0) == 1


def test_a_writer_whose_temporary_was_swept_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporaries, "nameless_files_work", lambda _: False)
    store, flock, swept = DirectoryStore(tmp_path, fsync=False), fcntl.flock, list[bool]()

    def frozen_before_the_lock(descriptor: int, operation: int) -> None:
        if not swept:
            swept.append(True)
            assert store.sweep(0) == 1
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", frozen_before_the_lock)
    store.create("key", b"bytes")
    assert store.read("key") == b"bytes"
    assert not list((tmp_path / temporaries.FOLDER).iterdir())
