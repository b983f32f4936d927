"""Items that another thread makes in advance: in order, bounded, and errors in their place."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caudal.files.ordered import Pile


@given(st.lists(st.integers(0, 9)), st.integers(1, 12))
def test_all_items_come_in_order(sizes: list[int], most: int) -> None:
    items = list(enumerate(sizes))
    pile = Pile(iter(items), lambda item: item[1], most)
    assert [item for some in pile.taken() for item in some] == items


def test_what_was_made_meanwhile_comes_at_once_and_no_more_is_made() -> None:
    made = threading.Semaphore(0)
    begun: list[int] = []

    def making() -> Iterator[int]:
        for number in range(10):
            begun.append(number)
            made.release()
            yield number

    with closing(Pile(making(), lambda _: 1, 3).taken()) as taken:
        first = next(taken)
        for _ in range(len(first) + 3):
            made.acquire()
        second = next(taken)
        assert first + second == list(range(len(first) + 3))
        assert len(second) == 3
    assert len(begun) <= len(first) + 3 + 4  # three wait, and one may be in the making


@given(st.lists(st.integers(0, 9)), st.integers(1, 12), st.integers(0, 20), st.integers(1, 5))
def test_items_are_taken_when_they_are_enough_or_no_more_is_made(
    sizes: list[int], most: int, worth: int, at_once: int
) -> None:
    """Also if `enough` wants more than may wait: then what waits is taken."""
    items = list(enumerate(sizes))

    def enough(waiting: Sequence[tuple[int, int]]) -> int:
        return min(at_once, len(waiting)) if sum(size for _, size in waiting) > worth else 0

    pile = Pile(iter(items), lambda item: item[1], most, enough)
    assert [item for some in pile.taken() for item in some] == items


def test_nothing_is_taken_before_it_is_enough() -> None:
    pile = Pile(iter(range(9)), lambda _: 1, 100, lambda waiting: 4 * (len(waiting) >= 4))
    assert list(pile.taken()) == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]


def test_what_is_enough_may_depend_on_the_time() -> None:
    """The maker is slow: it makes its second item only after the first was taken."""
    taken_first = threading.Event()

    def making() -> Iterator[int]:
        yield 1
        taken_first.wait()
        yield 2

    looks = count()
    pile = Pile(making(), lambda _: 1, 9, lambda waiting: len(waiting) * (next(looks) > 3))
    with closing(pile.taken()) as taken:
        assert next(taken) == [1]
        taken_first.set()
        assert next(taken) == [2]


def test_an_error_comes_after_the_items_before_it() -> None:
    def making() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("cannot be made")

    taken = Pile(making(), lambda _: 1, 9).taken()
    found = next(taken)
    if len(found) == 1:
        found += next(taken)
    assert found == [1, 2]
    with pytest.raises(ValueError, match="cannot be made"):
        next(taken)
