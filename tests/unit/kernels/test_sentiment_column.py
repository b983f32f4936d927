"""Arrow layouts: every way to store the same texts gives the same scores."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from caudal.kernels.sentiment.column import score

TEXTS = ["good", None, "", "not very good", "ugly — ♥", "naïve", "bad!", None]
SCORES = [0.7, 0.0, 0.0, -0.26923076923076916, 0.15000000000000002, 0.0, -0.8749999999999998, 0.0]


@pytest.mark.parametrize("layout", [pa.string(), pa.large_string(), pa.string_view()])
def test_string_layouts(layout: pa.DataType) -> None:
    assert score(pa.array(TEXTS, layout)).tolist() == SCORES


@pytest.mark.parametrize("layout", [pa.string(), pa.large_string(), pa.string_view()])
def test_sliced_arrays(layout: pa.DataType) -> None:
    texts = pa.array(TEXTS, layout)
    for start in range(len(TEXTS)):
        for stop in range(start, len(TEXTS) + 1):
            assert score(texts[start:stop]).tolist() == SCORES[start:stop]


def test_dictionary_encoded() -> None:
    texts = pa.array(TEXTS + TEXTS).dictionary_encode()
    assert score(texts).tolist() == SCORES + SCORES
    assert score(texts[3:10]).tolist() == (SCORES + SCORES)[3:10]


def test_a_null_inside_a_dictionary() -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array([None, "good"]))
    assert score(texts).tolist() == [0.7, 0.0, 0.0]


def test_chunks() -> None:
    assert score(pa.chunked_array([TEXTS[:3], [], TEXTS[3:]], pa.string())).tolist() == SCORES
    assert score(pa.chunked_array([], pa.string())).tolist() == []


def test_nulls_and_emptiness() -> None:
    assert score(pa.nulls(3)).tolist() == [0.0, 0.0, 0.0]
    assert score(pa.nulls(3, pa.string())).tolist() == [0.0, 0.0, 0.0]
    assert score(pa.array([], pa.string())).tolist() == []
    assert score(pa.array(["", ""])).tolist() == [0.0, 0.0]


def test_a_null_row_may_hide_bytes() -> None:
    offsets = pa.array([0, 4, 7], pa.int32()).buffers()[1]
    validity = pa.py_buffer(b"\x02")
    texts = pa.Array.from_buffers(pa.string(), 2, [validity, offsets, pa.py_buffer(b"goodbad")])
    assert score(texts).tolist() == [0.0, -0.6999999999999998]


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="needs a column of text, not of int64"):
        score(pa.array([1]))


def test_threads_agree() -> None:
    texts = pa.array(TEXTS * 200)
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(score, [texts] * 8):
            assert scores.tolist() == SCORES * 200
