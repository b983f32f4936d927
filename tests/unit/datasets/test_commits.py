"""Versions: one create each, in a row, with the Delta log behind them."""

import json
from pathlib import Path

import msgspec
import pytest
from tests.harness.datasets import HEAD, append, new_dataset, some_rows
from tests.harness.misbehaving_stores import Powered

from caudal.datasets import commits, keys
from caudal.datasets.commits import (
    FilesVacuumedError,
    VersionNotFoundError,
    commit,
    create_dataset,
    find_head,
    newer,
    next_version,
    open_contents,
    read_version,
    settle,
    write_logs,
)
from caudal.datasets.compaction import compact
from caudal.datasets.contents import Contents, encode_checkpoint
from caudal.datasets.delta import delta_commit
from caudal.datasets.documents import (
    DatasetTable,
    DatasetVersion,
    TableChange,
    decode_version,
    encode_head,
    encode_version,
)
from caudal.datasets.files import create_file, read_file
from caudal.datasets.parquet import read_rows
from caudal.datasets.vacuum import vacuum, vacuum_of
from caudal.errors import AlreadyExistsError, FormatError
from caudal.store import MemoryStore
from caudal.store.port import Store, entries

DAY = 86_400.0


def numbers(store: Store, contents: Contents) -> list[int]:
    parts = [read_file(store, "numbers", file) for file in contents.tables["numbers"]]
    found: list[int] = read_rows(parts)["n"].to_pylist() if parts else []
    return found


def test_a_dataset_begins_with_version_0() -> None:
    store = MemoryStore()
    contents = new_dataset(store)
    assert (contents.number, contents.tables) == (0, {"numbers": (), "rejects": ()})
    assert create_dataset(store, msgspec.structs.replace(HEAD, application="x")).head == HEAD


def test_loads_are_versions_in_a_row() -> None:
    store = MemoryStore()
    start = new_dataset(store)
    append(store, start, 1, 2)
    contents = append(store, start, 3)  # decided with contents that are out of date
    assert contents.number == 2
    assert numbers(store, contents) == [1, 2, 3]
    assert open_contents(store) == contents
    assert newer(store, start) == contents


def test_the_same_content_is_loaded_once() -> None:
    store = MemoryStore()
    contents = append(store, append(store, new_dataset(store), 1, 2), 1, 2)
    assert contents.number == 1


def with_doubtful_version() -> tuple[Powered, Contents]:
    """A dataset whose loader of version 1 died between naming the version and syncing the name."""
    store = Powered(MemoryStore())
    start = new_dataset(store)
    aside = MemoryStore()
    append(aside, new_dataset(aside), 1)
    for entry in entries(aside, keys.TABLES):
        store.create(entry.key, aside.read(entry.key))
    version = keys.version_key(1)
    store.create(version, aside.read(version), lasting=False)
    for table in ("numbers", "rejects"):
        store.delete(keys.delta_key(table, 1))
    return store, start


def cut_power(store: Powered) -> None:
    store.cut(lambda states: states[0])


def test_a_version_is_durable_before_its_delta_commits() -> None:
    store, start = with_doubtful_version()
    append(store, start, 2)
    cut_power(store)
    assert numbers(store, open_contents(store)) == [1, 2]


def test_a_version_is_durable_before_it_is_reported() -> None:
    store, start = with_doubtful_version()
    assert append(store, start, 1).number == 1
    cut_power(store)
    assert numbers(store, open_contents(store)) == [1]
    store, start = with_doubtful_version()
    settle(store, open_contents(store))
    cut_power(store)
    assert open_contents(store).number == 1


def test_an_old_version_is_still_there() -> None:
    store = MemoryStore()
    append(store, append(store, new_dataset(store), 1), 2)
    assert numbers(store, open_contents(store, 1)) == [1]
    with pytest.raises(VersionNotFoundError, match="there is no version 3: the newest is 2"):
        open_contents(store, 3)


def test_every_table_has_every_commit_and_each_follows_from_its_version() -> None:
    store = MemoryStore()
    contents = append(store, append(store, new_dataset(store), 1), 2)
    for number in range(3):
        version = read_version(store, number)
        for table in contents.tables:
            assert store.read(keys.delta_key(table, number)) == delta_commit(version, table)


def test_whoever_commits_next_writes_the_missing_log() -> None:
    store = MemoryStore()
    contents = append(store, new_dataset(store), 1)
    store.delete(keys.delta_key("rejects", 1))
    append(store, contents, 2)
    assert json.loads(store.read(keys.delta_key("rejects", 1)).splitlines()[0])["commitInfo"]


def test_a_log_that_differs_from_its_version_stops_the_next_commit() -> None:
    store = MemoryStore()
    contents = append(store, new_dataset(store), 1)
    store.delete(keys.delta_key("numbers", 1))
    store.create(keys.delta_key("numbers", 1), b"{}")
    with pytest.raises(FormatError, match="differs from version 1"):
        append(store, contents, 2)


def test_checkpoints_are_derived_and_may_be_missing_or_damaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commits, "CHECKPOINT_EVERY", 3)
    store = MemoryStore()
    contents = new_dataset(store)
    for n in range(8):
        contents = append(store, contents, n)
    expected = msgspec.structs.replace(contents, checkpoint=0)
    listed = [entry.key for entry in entries(store, keys.VERSIONS)]
    marks = [key for key in listed if key.endswith(".checkpoint")]
    assert marks == [keys.checkpoint_key(3), keys.checkpoint_key(6)]
    for number, mark in ((6, marks[1]), (3, marks[0]), (0, None)):
        found = open_contents(store)
        assert found.checkpoint == number
        assert msgspec.structs.replace(found, checkpoint=0) == expected
        if mark is not None:
            store.delete(mark)
            store.create(mark, b"damaged")


def test_a_checkpoint_that_does_not_fit_together_is_passed_over() -> None:
    store = MemoryStore()
    contents = append(store, append(store, new_dataset(store), 1), 2)
    (held, *others), change = contents.tables["numbers"], msgspec.structs.replace
    wrong = [
        change(contents, tables={**contents.tables, "numbers": (change(held, path=path), *others)})
        for path in ("../../other/x.parquet", "/etc/x.parquet")
    ]
    wrong += [
        change(contents, tables={**contents.tables, "../t": ()}),
        change(contents, tables={**contents.tables, "numbers": (change(held, added=3), *others)}),
        change(contents, history=contents.history[1:]),
        change(contents, head=change(contents.head, id="../x")),
    ]
    for one in wrong:
        store.create(keys.checkpoint_key(2), encode_checkpoint(one))
        assert open_contents(store) == contents
        store.delete(keys.checkpoint_key(2))


def test_a_missing_version_is_named() -> None:
    store = MemoryStore()
    append(store, append(store, new_dataset(store), 1), 2)
    store.delete(keys.version_key(1))
    with pytest.raises(FormatError, match=r"0001.json is missing although later"):
        open_contents(store)


def test_a_version_cannot_name_a_file_outside_of_its_table() -> None:
    store = MemoryStore()
    contents = append(store, new_dataset(store), 1)
    file = read_version(store, 1).changes["numbers"][0].add[0]
    for path in ("../x.parquet", "a/../b.parquet", "/etc/x.parquet", "a/b/c.parquet", "a/b.csv"):
        odd = TableChange((msgspec.structs.replace(file, path=path),))
        version = DatasetVersion(2, 10_000, "load", "x", changes={"numbers": (odd,)})
        data = encode_version(version)
        with pytest.raises(FormatError, match=r"no document of kind .dataset version.*add.*path"):
            decode_version(data, 2)
    assert contents.number == 1


def test_a_type_that_is_none_is_not_put_into_sql() -> None:
    store = MemoryStore()
    odd = DatasetTable("numbers", (("n", "INTEGER) FROM x; --"),), "digest")
    head = msgspec.structs.replace(HEAD, tables=(odd,))
    with pytest.raises((FormatError, KeyError, ValueError)):
        create_dataset(store, head)
    store = MemoryStore()
    first = DatasetVersion(0, 0, "create", head=head)
    store.create(keys.version_key(0), encode_version(first))
    store.create(keys.DATASET, encode_head(head))
    for read in (open_contents, find_head):
        with pytest.raises(FormatError, match="no type that Delta has"):
            read(store)


def test_compaction_changes_neither_rows_nor_their_order() -> None:
    store = MemoryStore()
    contents = new_dataset(store)
    for n in range(5):
        contents = append(store, contents, 10 * n, 10 * n + 1)
    merged = compact(store, 20.0)
    assert merged.number == 6
    assert len(merged.tables["numbers"]) == 1
    assert numbers(store, merged) == numbers(store, contents)
    assert compact(store, 30.0).number == 6  # nothing is left to merge
    later = append(store, merged, 7)
    assert numbers(store, later)[-1] == 7
    commit_lines = store.read(keys.delta_key("numbers", 6)).splitlines()
    actions = [json.loads(line) for line in commit_lines]
    changes = [one for action in actions for name, one in action.items() if name != "commitInfo"]
    assert not any(one["dataChange"] for one in changes)


def test_a_target_leaves_several_files() -> None:
    store = MemoryStore()
    contents = new_dataset(store)
    for n in range(6):
        contents = append(store, contents, n)
    size = contents.tables["numbers"][0].bytes
    merged = compact(store, 20.0, target_bytes=2 * size)
    assert [file.rows for file in merged.tables["numbers"]] == [2, 2, 2]
    assert numbers(store, merged) == [0, 1, 2, 3, 4, 5]


def test_a_vacuum_deletes_what_no_kept_version_needs() -> None:
    store = MemoryStore()
    contents = append(store, append(store, new_dataset(store), 1), 2)
    compact(store, now=20.0)
    assert vacuum(store, now=20.0 + DAY - 1, keep=DAY).files == 0  # version 2 is kept for a day
    report = vacuum(store, now=20.0 + DAY, keep=DAY)
    assert report.files == 2
    assert numbers(store, report.contents) == [1, 2]
    gone = vacuum_of(store, contents, report.contents)
    assert gone is not None
    assert gone.oldest == 3
    assert vacuum_of(store, open_contents(store, 3), report.contents) is None


def test_a_vacuum_deletes_what_a_killed_load_left() -> None:
    store = MemoryStore()
    contents = append(store, new_dataset(store), 1)
    create_file(store, "numbers", "killed", "00000000", some_rows(5))
    store.create(keys.progress_key("killed", "numbers", 0), b"{}")
    report = vacuum(store, now=DAY, keep=DAY)
    assert report.files == 1
    assert list(entries(store, keys.LOADS)) == []
    assert numbers(store, report.contents) == numbers(store, contents)


def test_a_load_whose_files_were_vacuumed_meanwhile_is_not_committed() -> None:
    store = MemoryStore()
    contents = append(store, new_dataset(store), 1)
    file = create_file(store, "numbers", "slow", "00000000", some_rows(5))
    vacuum(store, now=DAY, keep=DAY)

    def decide(newest: Contents) -> DatasetVersion:
        number, time = next_version(newest, DAY)
        return DatasetVersion(
            number, time, "load", "slow", changes={"numbers": (TableChange((file,)),)}
        )

    with pytest.raises(FilesVacuumedError):
        commit(store, contents, decide)


def test_a_vacuum_that_loses_the_race_spares_what_was_committed() -> None:
    store = MemoryStore()
    contents = append(store, new_dataset(store), 1)
    create_file(store, "numbers", "other", "00000000", some_rows(9))
    create = store.create

    def lose_once(key: str, data: bytes, **more: bool) -> None:
        store.create = create  # type: ignore[method-assign]
        append(store, contents, 2)  # takes the number that the vacuum wants
        create(key, data)

    store.create = lose_once  # type: ignore[method-assign,assignment]
    report = vacuum(store, now=DAY, keep=0.0, grace=0.0)
    assert report.contents.number == 3
    assert numbers(store, report.contents) == [1, 2]
    assert report.files == 1


class _Doubtful(MemoryStore):
    """A store that does not know that the bytes of a Delta log are the same."""

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        if "_delta_log" in key and any(one.key == key for one in entries(self, key)):
            raise AlreadyExistsError(key)
        super().create(key, data, lasting=lasting)


def test_a_log_that_is_there_with_the_same_bytes_is_not_another() -> None:
    store = _Doubtful()
    contents = append(store, new_dataset(store), 1)
    write_logs(store, read_version(store, 1), contents.head)
    assert append(store, contents, 2).number == 2
