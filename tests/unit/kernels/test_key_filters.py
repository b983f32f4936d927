"""A filter of keys never says no to one of its keys, and seldom yes to another."""

import decimal
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caudal.kernels.hashing import KeyFilter, key_words


def chunked(values: Sequence[object], kind: pa.DataType, chunks: int = 1) -> pa.ChunkedArray:
    size = max(1, -(-len(values) // chunks))
    parts = [values[at : at + size] for at in range(0, len(values), size)]
    return pa.chunked_array([pa.array(part, kind) for part in parts], kind)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
        (pa.string(), st.text(max_size=20)),
        (pa.decimal128(18, 9), st.decimals(-1000, 1000, places=9)),
    ],
    ids=str,
)
@given(data=st.data())
def test_every_key_is_found_whatever_its_chunks(
    kind: pa.DataType, values: st.SearchStrategy[object], data: st.DataObject
) -> None:
    keys = data.draw(st.lists(values, max_size=30))
    asked = keys + data.draw(st.lists(values, max_size=5))
    found = KeyFilter(key_words(chunked(keys, kind, chunks=2))).may_hold(
        key_words(chunked(asked, kind, chunks=data.draw(st.integers(1, 3))))
    )
    assert len(found) == len(asked)
    assert found[: len(keys)].all()


def test_views_and_narrow_decimals_are_known_by_their_values() -> None:
    texts = KeyFilter(key_words(chunked(["a", "a long text, longer than a view"], pa.string())))
    views = chunked(["a", "a long text, longer than a view", "b"], pa.string_view())
    assert texts.may_hold(key_words(views)).tolist() == [True, True, False]
    numbers = [decimal.Decimal("1.5"), decimal.Decimal("-2")]
    wide = KeyFilter(key_words(chunked(numbers, pa.decimal128(18, 9))))
    assert wide.may_hold(key_words(chunked(numbers, pa.decimal64(18, 9)))).all()


def test_few_others_are_let_through() -> None:
    filter_ = KeyFilter(key_words(chunked(list(range(0, 100_000, 7)), pa.int64())))
    others = [number for number in range(200_000, 300_000) if number % 7]
    assert filter_.may_hold(key_words(chunked(others, pa.int64()))).mean() < 0.02


def test_no_keys() -> None:
    nothing = KeyFilter(key_words(pa.chunked_array([], pa.int64())))
    assert not nothing.may_hold(key_words(chunked([1, 2, 3], pa.int64()))).any()
