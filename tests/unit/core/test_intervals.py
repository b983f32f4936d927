"""Interval sets against Python's sets."""

from hypothesis import given
from hypothesis import strategies as st

from caudal.jobs.intervals import IntervalSet

numbers = st.sets(st.integers(0, 40))


@given(numbers, st.integers(0, 50))
def test_like_a_set(members: set[int], end: int) -> None:
    found = IntervalSet.of(members)
    assert set(found) == members
    assert list(found) == sorted(members)
    assert len(found) == len(members)
    assert all((number in found) == (number in members) for number in range(60))
    assert set(found.missing(end)) == set(range(end)) - members
    assert found.covers(end) == (set(range(end)) <= members)
    assert found.prefix() == next(n for n in range(60) if n not in members)


@given(numbers)
def test_one_form_for_one_set(members: set[int]) -> None:
    found = IntervalSet.of(members)
    assert found == IntervalSet.of(sorted(members, reverse=True))
    for (_, end), (first, _) in zip(found.spans, found.spans[1:], strict=False):
        assert end < first


def test_upto() -> None:
    assert IntervalSet.upto(0) == IntervalSet()
    assert list(IntervalSet.upto(3)) == [0, 1, 2]
