"""Views of texts: what Arrow does with plain strings is what these functions do with views."""

import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from caudal.files.text_views import chosen_views, outermost_texts

_LETTERS = ["", "a", "b", "é", "🙂", "\0", "abc", "abcd", "abce", "abcdefghijklm", "z" * 40]


def some_texts(chance: random.Random) -> pa.ChunkedArray:
    def text() -> str | None:
        made = "".join(chance.choices(_LETTERS, k=chance.randint(0, 3)))
        return None if chance.random() < 0.2 else made

    chunks = [
        pa.array([text() for _ in range(chance.randint(0, 30))], pa.string())
        for _ in range(chance.randint(0, 3))
    ]
    sliced = [one.slice(chance.randint(0, len(one))) for one in chunks]
    return pa.chunked_array(sliced, pa.string())


@pytest.mark.parametrize("seed", range(40))
def test_views_are_chosen_and_bounded_like_strings(seed: int) -> None:
    chance = random.Random(seed)
    texts = some_texts(chance)
    views = pa.chunked_array(
        [one.cast(pa.string_view()).slice(0) for one in texts.chunks], pa.string_view()
    )
    chosen = np.array([chance.random() < 0.5 for _ in range(len(texts))], np.bool_)
    expected = texts.filter(pa.array(chosen, pa.bool_())).to_pylist()
    for column in (texts, views):
        found = chosen_views(column, chosen)
        found.validate(full=True)
        assert found.to_pylist() == expected
        assert chosen_views(column, None).to_pylist() == texts.to_pylist()
    outer = outermost_texts(views)
    assert pc.min_max(outer).as_py() == pc.min_max(texts).as_py()
    assert outer.null_count == 0


def test_slices_of_views_keep_their_place() -> None:
    views = pa.array(["one", None, "a text of some length", "four"], pa.string_view()).slice(1, 2)
    column = pa.chunked_array([views])
    assert chosen_views(column, np.array([True, True])).to_pylist() == views.to_pylist()
    assert outermost_texts(column).to_pylist() == ["a text of some length"]
