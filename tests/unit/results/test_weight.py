"""What rows weigh as Python values: for every kind of array, whole and sliced."""

import pyarrow as pa
import pytest

from caudal.results.weight import weight

UNION = pa.UnionArray.from_sparse(
    pa.array([0, 1, 0], pa.int8()), [pa.array(["a", "bb", "ccc"]), pa.array([1, 2, 3])]
)
STRUCT = pa.StructArray.from_arrays(
    [UNION, pa.nulls(3), pa.array(["x", None, "z"])],
    names=["u", "n", "t"],
    mask=pa.array([False, True, False]),
)
ARRAYS = {
    "union": UNION,
    "struct of a union": STRUCT,
    "null": pa.nulls(3),
    "list of structs": pa.ListArray.from_arrays(pa.array([0, 1, 1, 3]), STRUCT),
    "list with nulls": pa.array([["a"], None, ["bb", "c"]], pa.list_(pa.string())),
    "large list": pa.array([["a"], None, ["bb"]], pa.large_list(pa.string())),
    "fixed list": pa.array([["a", "b"], None, ["c", "d"]], pa.list_(pa.string(), 2)),
    "list view": pa.array([["a"], None, ["bb"]], pa.list_view(pa.string())),
    "map": pa.array([[("k", "v")], None, []], pa.map_(pa.string(), pa.string())),
    "dictionary": pa.array(["a", "b", "a"]).dictionary_encode(),
    "view": pa.array(["a", "b", "c"], pa.string_view()),
    "integers": pa.array([1, 2, 3]),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_every_kind_weighs_something_and_a_part_no_more_than_the_whole(array: pa.Array) -> None:
    whole = weight(array)
    assert whole >= 64 * len(array)
    parts = [weight(array.slice(place, 1)) for place in range(len(array))]
    assert all(0 < part <= whole for part in parts)
    assert sum(parts) >= whole // 2


def test_texts_count_as_often_as_they_occur() -> None:
    text = "x" * 1_000
    repeated = pa.array([text] * 100).dictionary_encode()
    assert weight(repeated) > 100_000
    assert weight(pa.array([[True] * 1_000])) > 64_000
