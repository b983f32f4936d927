"""What every store promises (`caudal/store/port.py`): one suite, every implementation."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caudal.errors import AlreadyExistsError, NotFoundError, StoreError, UsageError
from caudal.store import Store, entries, require_conditional_create

NewStore = Callable[[], Store]
BIG = bytes(range(256)) * (5 << 12)  # 5 MiB


def keys_of(store: Store, prefix: str = "") -> list[str]:
    return [entry.key for entry in entries(store, prefix)]


class TestCreate:
    def test_an_object_is_read_as_it_was_created(self, store: Store) -> None:
        store.create("a/b/c", b"some bytes")
        assert store.read("a/b/c") == b"some bytes"

    def test_an_empty_object_is_an_object(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "empty").touch()
        store.create("from bytes", b"")
        store.create("from file", tmp_path / "empty")
        assert store.read("from bytes") == store.read("from file") == b""
        assert keys_of(store) == ["from bytes", "from file"]

    def test_a_large_local_file(self, store: Store, tmp_path: Path) -> None:
        source = tmp_path / "large"
        source.write_bytes(BIG)
        store.create("large", source)
        source.write_bytes(b"the local file changes afterwards")
        assert store.read("large") == BIG
        assert store.read("large", len(BIG) - 3, 100) == BIG[-3:]

    def test_other_bytes_under_a_taken_key(self, store: Store) -> None:
        store.create("key", b"first")
        for other in (b"second", b"FIRST", b"", b"first and more"):
            with pytest.raises(AlreadyExistsError, match="key"):
                store.create("key", other)
        assert store.read("key") == b"first"

    def test_the_same_bytes_again_are_our_own(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "same").write_bytes(BIG)
        (tmp_path / "other").write_bytes(BIG[:-1] + b"!")
        store.create("key", BIG)
        store.create("key", BIG)
        store.create("key", tmp_path / "same")
        with pytest.raises(AlreadyExistsError):
            store.create("key", tmp_path / "other")

    def test_a_key_is_free_again_after_delete(self, store: Store) -> None:
        store.create("folder/key", b"first")
        store.delete("folder/key")
        store.create("folder/key", b"second")
        assert store.read("folder/key") == b"second"

    @pytest.mark.parametrize("data", [b"%d", b"%d" * 40_000], ids=["small", "larger"])
    def test_of_many_creates_one_wins(self, store: Store, data: bytes) -> None:
        writers = 8
        together = Barrier(writers)

        def create(writer: int) -> bool:
            together.wait()
            try:
                store.create("race/here", data.replace(b"%d", b"%d" % writer))
            except AlreadyExistsError:
                return False
            return True

        with ThreadPoolExecutor(writers) as pool:
            won = list(pool.map(create, range(writers)))
        assert won.count(True) == 1
        assert store.read("race/here") == data.replace(b"%d", b"%d" % won.index(True))

    def test_creates_and_deletes_beside_each_other_lose_nothing(self, store: Store) -> None:
        """Each worker's clean-up empties the folder under the other workers' creates."""

        def work(worker: int) -> None:
            for round_ in range(15):
                key = f"shared/{round_ % 2}/{worker}"
                store.create(key, b"%d" % round_)
                assert store.read(key) == b"%d" % round_
                store.delete(key)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert keys_of(store) == []

    def test_a_missing_local_file_is_said_plainly(self, store: Store, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match=r"cannot read the local file .*absent"):
            store.create("key", tmp_path / "absent")
        assert keys_of(store) == []


class TestRead:
    @pytest.mark.parametrize("offset", [0, 1, 5, 9, 10, 11, 1000])
    @pytest.mark.parametrize("length", [None, 0, 1, 5, 10, 1000])
    def test_a_range_is_a_slice(self, store: Store, offset: int, length: int | None) -> None:
        store.create("digits", b"0123456789")
        end = 10 if length is None else offset + length
        assert store.read("digits", offset, length) == b"0123456789"[offset:end]

    def test_a_range_of_nothing(self, store: Store) -> None:
        store.create("empty", b"")
        assert store.read("empty", 0, 10) == store.read("empty", 3) == b""

    @pytest.mark.parametrize("where", [(0, None), (0, 0), (5, 5), (5, None)])
    def test_no_object(self, store: Store, where: tuple[int, int | None]) -> None:
        store.create("folder/key", b"bytes")
        for key in ("absent", "folder", "folder/absent", "folder/key/below"):
            with pytest.raises(NotFoundError, match=key):
                store.read(key, *where)

    def test_a_negative_range_is_a_mistake(self, store: Store) -> None:
        store.create("key", b"bytes")
        for offset, length in ((-1, None), (0, -1)):
            with pytest.raises(UsageError, match="negative"):
                store.read("key", offset, length)


class TestDelete:
    def test_deleting_is_idempotent(self, store: Store) -> None:
        store.create("folder/key", b"bytes")
        for _ in range(2):
            store.delete("folder/key")
            with pytest.raises(NotFoundError):
                store.read("folder/key")

    def test_deleting_what_never_was(self, store: Store) -> None:
        store.create("folder/key", b"bytes")
        for key in ("absent", "folder", "folder/absent", "folder/key/below", "a/b/c"):
            store.delete(key)
        assert keys_of(store) == ["folder/key"]


class TestReplace:
    def test_the_key_may_be_free_or_taken(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(BIG)
        store.replace("folder/key", b"first")
        assert store.read("folder/key") == b"first"
        store.replace("folder/key", tmp_path / "file")
        assert store.read("folder/key") == BIG

    def test_the_tag_changes_with_the_bytes_and_is_listed(self, store: Store) -> None:
        tags = []
        for data in (b"first", b"later", b"third"):
            tags.append(store.replace("key", data))
            assert [entry.tag for entry in entries(store, "")] == tags[-1:]
        assert len(set(tags)) == 3

    @pytest.mark.parametrize("twin", ["twin", "gone", "gone/deeper", "twin/below", "shorter"])
    @pytest.mark.parametrize("taken", [False, True])
    def test_a_twin_makes_no_difference(self, store: Store, twin: str, taken: bool) -> None:
        store.create("twin", b"bytes")
        store.create("shorter", b"byte")
        if taken:
            store.replace("folder/key", b"older")
        tag = store.replace("folder/key", b"bytes", twin=twin)
        assert store.read("folder/key") == b"bytes"
        assert [entry.tag for entry in entries(store, "folder/")] == [tag]
        store.delete("twin")
        assert store.read("folder/key") == b"bytes"
        assert keys_of(store) == ["folder/key", "shorter"]

    def test_a_twin_and_its_twin(self, store: Store) -> None:
        store.create("twin", b"bytes")
        first = store.replace("key", b"bytes", twin="twin")
        store.replace("key", b"other")
        store.replace("key", b"bytes", twin="twin")
        tag = store.replace("key", b"bytes", twin="twin")
        assert [entry.tag for entry in entries(store, "key")] == [tag]
        assert store.replace("key", b"other") not in {first, tag}
        assert store.read("twin") == b"bytes"

    def test_readers_see_the_old_object_or_the_new_one(self, store: Store) -> None:
        versions = [bytes([number]) * 300_000 for number in range(8)]
        store.replace("key", versions[0])
        done = Event()

        def read_until_done() -> set[bytes]:
            seen = set()
            while not done.is_set():
                seen.add(store.read("key"))
            return seen

        with ThreadPoolExecutor(2) as pool:
            readers = [pool.submit(read_until_done) for _ in range(2)]
            for version in versions[1:]:
                store.replace("key", version)
            done.set()
        assert set.union(*(reader.result() for reader in readers)) <= set(versions)
        assert store.read("key") == versions[-1]


class TestKeys:
    @pytest.mark.parametrize(
        "key",
        ["ñandú/año=2024/é", "emoji/😀/x", "e\u0301 is not é", " /blanks /  x", "~/.hidden/...",
         "%2F%41%/100%", "a+b&c=d;e,f:g@h!$'()*", "#?[]{}<>|^`\"", "ﬁ/ﬀ/\uffee", "Case/case",
         "n" * 255 + "/" + "é" * 127]
    )  # fmt: skip
    def test_unusual_keys(self, store: Store, key: str) -> None:
        store.create(key, key.encode())
        assert store.read(key) == key.encode()
        assert [(entry.key, entry.size) for entry in entries(store, "")] == [
            (key, len(key.encode()))
        ]
        folder = key.rpartition("/")[0]
        assert keys_of(store, f"{folder}/" if folder else "") == [key]
        store.delete(key)
        assert keys_of(store) == []

    @pytest.mark.parametrize(
        "key",
        ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a\\b", "a\nb", "a\x00",
         "\udcff", "\ufffe", "n" * 256, "é" * 128, "long/" * 200 + "x", ".caudal-tmp/x",
         "a/.caudal-x", ".caudal-probe", ".caudal-probe/../x"]
    )  # fmt: skip
    def test_what_is_no_key(self, store: Store, key: str) -> None:
        for operation in (
            lambda: store.create(key, b""),
            lambda: store.read(key),
            lambda: store.delete(key),
            lambda: store.replace(key, b""),
            lambda: store.replace("key", b"", twin=key),
        ):
            with pytest.raises(UsageError, match="cannot be a key"):
                operation()

    def test_what_is_no_prefix(self, store: Store) -> None:
        for prefix in ("/", "../", "a/../", "a//", "/a"):
            with pytest.raises(UsageError, match="cannot be a key"):
                store.list(prefix)


# Characters on both sides of "/" in the order, and beyond one byte of UTF-8.
NAMES = st.text("ab-.0~é😀", min_size=1, max_size=3).filter(lambda name: name not in {".", ".."})
KEYS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


def without_folders(keys: set[str]) -> list[str]:
    return sorted(key for key in keys if not any(other.startswith(f"{key}/") for other in keys))


def level_of(keys: list[str], prefix: str) -> list[str]:
    """The keys and folders directly below a prefix, in order, by definition."""
    below = [key for key in keys if key.startswith(prefix)]
    ends = [key.find("/", len(prefix)) for key in below]
    return sorted(
        {key if end < 0 else key[: end + 1] for key, end in zip(below, ends, strict=True)}
    )


class TestList:
    def test_a_folder_stands_where_its_keys_do(self, store: Store) -> None:
        """File names would sort `a` before `a-b`; keys sort `a-b` before `a/b`."""
        keys = ["a-b", "a.b/c", "a/b", "a/b.c", "a/c/d", "a0", "é"]
        for key in reversed(keys):
            store.create(key, b"")
        assert keys_of(store) == keys
        assert keys_of(store, "a/") == ["a/b", "a/b.c", "a/c/d"]
        assert keys_of(store, "a") == keys[:-1]
        page = store.list("", recursive=False)
        assert [entry.key for entry in page.entries] == ["a-b", "a0", "é"]
        assert page.folders == ("a.b/", "a/")

    def test_nothing_there(self, store: Store) -> None:
        store.create("a/b", b"")
        assert store.list("a/b/").entries == store.list("b").entries == ()
        assert store.list("a", after="a/b").last is None

    def test_after_need_not_be_a_key(self, store: Store) -> None:
        """Nor comes a folder before `after` because its name alone would."""
        keys = ["a-b", "a/c/d", "a0"]
        for key in keys:
            store.create(key, b"")
        for after, first in {"a": 0, "a-": 0, "a-b": 1, "a/c": 1, "a/c/d": 2, "a/z": 2}.items():
            assert [entry.key for entry in store.list("", after=after).entries] == keys[first:]

    def test_sizes(self, store: Store) -> None:
        store.create("five", b"12345")
        assert [entry.size for entry in store.list("").entries] == [5]

    @settings(max_examples=60)
    @given(keys=st.sets(KEYS, max_size=12), prefix=st.one_of(st.just(""), KEYS), data=st.data())
    def test_pages_are_slices_of_the_sorted_keys(
        self, new_store: NewStore, keys: set[str], prefix: str, data: st.DataObject
    ) -> None:
        store, model = new_store(), without_folders(keys)
        for key in model:
            store.create(key, b"")
        prefix = prefix[: data.draw(st.integers(0, len(prefix)))]
        if prefix.startswith("/") or set(prefix.split("/")[:-1]) & {"", ".", ".."}:
            prefix = ""
        limit = data.draw(st.integers(1, 5))
        after = data.draw(st.one_of(st.just(""), KEYS, st.sampled_from(model or [""])))
        for recursive in (True, False):
            items = model if recursive else level_of(model, prefix)
            wanted = [item for item in items if item.startswith(prefix) and item > after]
            assert listed(store, prefix, recursive, after, limit) == wanted

    def test_the_probe_finds_no_fault_and_leaves_nothing(self, store: Store) -> None:
        require_conditional_create(store)
        assert keys_of(store) == []

    def test_what_is_the_store_s_own_is_not_listed(self, store: Store) -> None:
        store.create(".caudal-probe/x", b"")
        store.create("a", b"")
        assert keys_of(store) == ["a"]
        assert store.list("", recursive=False).folders == ()
        store.delete(".caudal-probe/x")


def listed(store: Store, prefix: str, recursive: bool, after: str, limit: int) -> list[str]:
    """All items of a listing, in order; each page but the last is full."""
    found: list[str] = []
    while True:
        page = store.list(prefix, recursive=recursive, after=after, limit=limit)
        items = sorted([entry.key for entry in page.entries] + list(page.folders))
        found += items
        if page.last is None:
            return found
        assert len(items) == limit
        assert items[-1] == page.last
        after = page.last
