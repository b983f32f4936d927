"""Listing by folders gives the order of keys, and opens no folder that it need not."""

from hypothesis import given, settings
from hypothesis import strategies as st

from caudal.store import Entry
from caudal.store import walk as walking

NAMES = st.text("ab-./0~é😀\uffee".replace("/", ""), min_size=1, max_size=3)
KEYS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


class Tree:
    """Keys as a file system would hold them, in the order of nothing in particular."""

    def __init__(self, keys: set[str]) -> None:
        self.keys = {key for key in keys if not any(other.startswith(f"{key}/") for other in keys)}
        self.opened: list[str] = []

    def level(self, folder: str) -> set[str]:
        self.opened.append(folder)
        below = (key[len(folder) :] for key in self.keys if key.startswith(folder))
        return {rest.partition("/")[0] + ("/" if "/" in rest else "") for rest in below}

    def walk(self, prefix: str = "", recursive: bool = True, after: str = "") -> list[str]:
        return list(walking.walk(self.level, prefix, recursive=recursive, after=after))


@settings(max_examples=300)
@given(keys=st.sets(KEYS, max_size=30), prefix=st.one_of(st.just(""), KEYS), after=KEYS)
def test_a_walk_gives_the_sorted_keys(keys: set[str], prefix: str, after: str) -> None:
    tree = Tree(keys)
    for start in ("", after):
        wanted = sorted(key for key in tree.keys if key.startswith(prefix) and key > start)
        assert tree.walk(prefix, after=start) == wanted


@given(st.sets(KEYS))
def test_the_order_of_strings_is_that_of_their_bytes(keys: set[str]) -> None:
    assert sorted(keys) == sorted(keys, key=str.encode)


def test_folders_before_after_are_not_opened() -> None:
    tree = Tree({f"jobs/{group:03}/{number:03}" for group in range(100) for number in range(5)})
    assert tree.walk("jobs/", after="jobs/098/003")[0] == "jobs/098/004"
    assert tree.opened == ["jobs/", "jobs/098/", "jobs/099/"]


def test_a_page_opens_only_the_folders_of_its_own_keys() -> None:
    tree = Tree({f"{group:03}/{number:03}" for group in range(100) for number in range(5)})
    walked = walking.walk(tree.level, "", recursive=True, after="")
    page = walking.page(walked, lambda key: Entry(key, 0, ""), 7)
    assert [entry.key for entry in page.entries][-1] == page.last == "001/001"
    assert tree.opened == ["", "000/", "001/"]


def test_empty_folders_are_listed_in_their_place_and_once() -> None:
    levels = {"": {"a/", "b/", "c"}, "a/": {"x/", "y"}, "a/x/": set[str](), "b/": set[str]()}

    def walk(after: str) -> list[str]:
        return list(walking.walk(levels.__getitem__, "", recursive=True, after=after))

    assert walk("") == ["a/x/", "a/y", "b/", "c"]
    assert [walk(after)[:1] for after in walk("")] == [["a/y"], ["b/"], ["c"], []]


def test_one_level_opens_one_folder() -> None:
    tree = Tree({"a/x/1", "a/x/2", "a/x-y", "a/y/1", "b"})
    assert tree.walk("a/", recursive=False) == ["a/x-y", "a/x/", "a/y/"]
    assert tree.walk("a/", recursive=False, after="a/x/") == ["a/y/"]
    assert tree.opened == ["a/", "a/"]


def test_what_has_gone_meanwhile_is_left_out_and_the_page_is_filled() -> None:
    gone = {"b", "c"}
    page = walking.page(iter("abcdef"), lambda key: None if key in gone else Entry(key, 0, ""), 2)
    assert ([entry.key for entry in page.entries], page.last) == (["a", "d"], "d")
