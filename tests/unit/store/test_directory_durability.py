"""What reaches the disk before an answer is given: the order of system calls, recorded."""

import os
from pathlib import Path

import pytest

from caudal.errors import AlreadyExistsError
from caudal.store import DirectoryStore, temporaries

Trace = list[tuple[str, str]]


@pytest.fixture(params=[True, False], ids=["nameless", "named"])
def trace(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """The calls that matter after a power cut, as (call, path below the store's root)."""
    if not request.param:
        monkeypatch.setattr(temporaries, "nameless_files_work", lambda _: False)
    made: Trace = []

    def path_of(descriptor: int) -> str:
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        if "/#" in path or temporaries.FOLDER in path:
            return "temporary" if os.fstat(descriptor).st_nlink < 3 else temporaries.FOLDER
        return os.path.relpath(path, tmp_path)

    def record(name: str, where: int, below: str | None = None) -> None:
        folder = path_of(where)
        made.append((name, folder if below is None else os.path.normpath(f"{folder}/{below}")))

    fsync, write, link, rename = os.fsync, os.write, os.link, os.rename
    mkdir, unlink = os.mkdir, os.unlink

    def watched_fsync(descriptor: int) -> None:
        record("fsync", descriptor)
        fsync(descriptor)

    def watched_write(descriptor: int, data: bytes) -> int:
        record("write", descriptor)
        return write(descriptor, data)

    def watched_link(source: str, name: str, *, src_dir_fd: int | None, dst_dir_fd: int) -> None:
        link(source, name, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        record("link", dst_dir_fd, name)

    def watched_rename(source: str, name: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        rename(source, name, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        record("rename", dst_dir_fd, name)

    def watched_mkdir(name: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        mkdir(name, mode, dir_fd=dir_fd)
        if dir_fd is not None:
            record("mkdir", dir_fd, name)

    def watched_unlink(name: str | Path, *, dir_fd: int | None = None) -> None:
        unlink(name, dir_fd=dir_fd)
        if dir_fd is not None:
            record("unlink", dir_fd, str(name))

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "write", watched_write)
    monkeypatch.setattr(os, "link", watched_link)
    monkeypatch.setattr(os, "rename", watched_rename)
    monkeypatch.setattr(os, "mkdir", watched_mkdir)
    monkeypatch.setattr(os, "unlink", watched_unlink)
    return made


def before(trace: Trace, first: tuple[str, str], then: tuple[str, str]) -> bool:
    """Whether the last `first` comes before the last `then`."""
    return _last(trace, first) < _last(trace, then)


def _last(trace: Trace, step: tuple[str, str]) -> int:
    assert step in trace, f"{step} is missing in {trace}"
    return len(trace) - 1 - trace[::-1].index(step)


def test_bytes_then_name_then_folder(tmp_path: Path, trace: Trace) -> None:
    store = DirectoryStore(tmp_path)
    store.create("a/b/key", b"bytes")
    assert before(trace, ("write", "temporary"), ("fsync", "temporary"))
    assert before(trace, ("fsync", "temporary"), ("link", "a/b/key"))
    assert before(trace, ("link", "a/b/key"), ("fsync", "a/b"))


def test_new_folders_are_durable_before_the_answer(tmp_path: Path, trace: Trace) -> None:
    DirectoryStore(tmp_path / "root").create("a/b/key", b"bytes")
    for folder, parent in (("root/a", "root"), ("root/a/b", "root/a")):
        assert before(trace, ("mkdir", folder), ("fsync", parent))
    assert ("fsync", ".") in trace, "the store's own folder is new too"


def test_folders_made_by_another_process_are_not_trusted(tmp_path: Path, trace: Trace) -> None:
    """It may have died before it synced their parents."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    DirectoryStore(tmp_path).create("a/b/key", b"bytes")
    assert {("fsync", "."), ("fsync", "a"), ("fsync", "a/b")} <= set(trace)


def test_a_second_object_costs_two_syncs(tmp_path: Path, trace: Trace) -> None:
    store = DirectoryStore(tmp_path)
    store.create("a/b/first", b"bytes")
    trace.clear()
    store.create("a/b/second", b"bytes")
    assert [step for step in trace if step[0] == "fsync"] == [
        ("fsync", "temporary"),
        ("fsync", "a/b"),
    ]


def test_a_create_that_need_not_last_syncs_only_its_bytes(tmp_path: Path, trace: Trace) -> None:
    store = DirectoryStore(tmp_path)
    store.create("warm", b"up")
    trace.clear()
    store.create("a/b/passing", b"bytes", lasting=False)
    assert before(trace, ("fsync", "temporary"), ("link", "a/b/passing"))
    assert {path for name, path in trace if name == "fsync"} == {"temporary"}


def test_what_lasts_in_a_folder_that_did_not_syncs_the_way_to_it(
    tmp_path: Path, trace: Trace
) -> None:
    store = DirectoryStore(tmp_path)
    store.create("a/b/passing", b"bytes", lasting=False)
    trace.clear()
    store.replace("a/b/key", b"bytes", twin="a/b/passing")
    assert trace == [("fsync", "."), ("fsync", "a"), ("link", "a/b/key"), ("fsync", "a/b")]


@pytest.mark.parametrize("key", ["top", "a/b/second", "a/b/c/deeper"])
def test_what_need_not_last_beside_what_does(tmp_path: Path, trace: Trace, key: str) -> None:
    store = DirectoryStore(tmp_path)
    store.create("a/b/first", b"bytes")
    trace.clear()
    store.create(key, b"bytes", lasting=False)
    assert store.read(key) == (tmp_path / key).read_bytes() == b"bytes"
    assert [step for step in trace if step[0] == "fsync"] == [("fsync", "temporary")]
    with pytest.raises(AlreadyExistsError):
        store.create(key, b"other", lasting=False)


def test_what_need_not_last_where_clean_up_was(tmp_path: Path) -> None:
    """The open folder nearest to it is a removed one."""
    store = DirectoryStore(tmp_path)
    store.create("a/b/first", b"bytes")
    DirectoryStore(tmp_path).delete("a/b/first")
    assert not (tmp_path / "a").exists()
    store.create("a/b/c/key", b"bytes", lasting=False)
    assert (tmp_path / "a/b/c/key").read_bytes() == b"bytes"


@pytest.mark.parametrize("data", [b"bytes", b"other"])
def test_a_taken_key_is_made_durable_before_anything_is_said(
    tmp_path: Path, trace: Trace, data: bytes
) -> None:
    DirectoryStore(tmp_path, fsync=False).create("a/key", b"bytes")
    trace.clear()
    try:
        DirectoryStore(tmp_path).create("a/key", data)
    except AlreadyExistsError:
        assert data == b"other"
    assert {("fsync", "a/key"), ("fsync", "a"), ("fsync", ".")} <= set(trace)


def test_replace_syncs_like_create(tmp_path: Path, trace: Trace) -> None:
    DirectoryStore(tmp_path).replace("a/key", b"bytes")
    assert before(trace, ("write", "temporary"), ("fsync", "temporary"))
    assert before(trace, ("fsync", "temporary"), ("rename", "a/key"))
    assert before(trace, ("rename", "a/key"), ("fsync", "a"))


def test_a_twin_is_named_again_and_only_the_name_is_synced(tmp_path: Path, trace: Trace) -> None:
    store = DirectoryStore(tmp_path)
    store.create("b/twin", b"bytes")
    store.create("a/other", b"other")
    trace.clear()
    store.replace("a/key", b"bytes", twin="b/twin")
    assert trace == [("link", "a/key"), ("fsync", "a")]
    store.replace("a/other", b"bytes", twin="b/twin")
    assert before(trace, ("rename", "a/other"), ("fsync", "a"))
    assert "write" not in {name for name, _ in trace}
    assert (tmp_path / "a/key").stat().st_nlink == 3
    assert not list((tmp_path / temporaries.FOLDER).iterdir())


def test_a_delete_that_need_not_last_syncs_nothing(tmp_path: Path, trace: Trace) -> None:
    store = DirectoryStore(tmp_path)
    store.create("a/stays", b"bytes")
    store.create("a/b/c/key", b"bytes")
    trace.clear()
    store.delete("a/b/c/key", lasting=False)
    assert trace == [("unlink", "a/b/c/key")]
    assert not (tmp_path / "a" / "b").exists()


def test_delete_syncs_the_folder_that_stays(tmp_path: Path, trace: Trace) -> None:
    store = DirectoryStore(tmp_path)
    store.create("a/stays", b"bytes")
    store.create("a/b/c/key", b"bytes")
    store.delete("a/b/c/key")
    assert before(trace, ("unlink", "a/b/c/key"), ("fsync", "a"))
    assert not (tmp_path / "a" / "b").exists()


def test_without_fsync_nothing_is_synced(tmp_path: Path, trace: Trace) -> None:
    store = DirectoryStore(tmp_path, fsync=False)
    store.create("a/key", b"bytes")
    store.replace("a/key", b"other")
    store.delete("a/key")
    assert "fsync" not in {name for name, _ in trace}


def test_a_root_that_is_moved_away_is_not_an_empty_store(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "root")
    store.create("jobs/j/job.json", b"a job")
    (tmp_path / "root").rename(tmp_path / "elsewhere")
    assert store.read("jobs/j/job.json") == b"a job"
    assert [entry.key for entry in store.list("jobs/").entries] == ["jobs/j/job.json"]
    (tmp_path / "root").mkdir()  # a disk that is not mounted yet looks like this
    assert store.read("jobs/j/job.json") == b"a job"
    store.delete("jobs/j/job.json")
    assert not (tmp_path / "elsewhere" / "jobs").exists()
