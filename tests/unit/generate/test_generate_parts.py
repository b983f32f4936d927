"""The parts that the files are made of."""

import ast
import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caudal.generate import text
from caudal.generate.dice import Dice, weighted_slots
from caudal.generate.literals import escaped_literal, literal
from caudal.generate.popularity import Popularity, Shuffle, Stratum
from caudal.generate.templates import expand

INDEX = np.arange(10_000, dtype=np.int64)


def test_draws_are_fixed_for_ever() -> None:
    """These numbers are part of the promise that a seed gives the same bytes."""
    assert Dice(1).below("label", INDEX[:5], 1_000).tolist() == [670, 557, 51, 852, 538]


def test_draws_stay_below_their_bound_and_fill_it() -> None:
    drawn = Dice(3).below("x", INDEX, 7)
    assert set(drawn.tolist()) == set(range(7))


def test_a_weighted_draw_follows_its_weights() -> None:
    drawn = Dice(3).weighted("x", INDEX, weighted_slots((1, 0, 3)))
    share = np.bincount(drawn, minlength=3) / len(INDEX)
    assert share == pytest.approx([0.25, 0, 0.75], abs=0.02)


@given(st.integers(1, 5_000))
def test_a_shuffle_is_a_bijection_with_its_inverse(size: int) -> None:
    index = np.arange(size, dtype=np.int64)
    shuffled = Shuffle(size).forward(index)
    assert sorted(shuffled.tolist()) == index.tolist()
    assert Shuffle(size).inverse(shuffled).tolist() == index.tolist()


@given(st.integers(1, 300), st.integers(1, 3_000))
def test_ranks_stay_within_the_titles(titles: int, draws: int) -> None:
    strata = (Stratum(1_000, 30_000), Stratum(9_000, 40_000), Stratum(90_000, 30_000))
    ranks = Popularity(titles, draws, strata).ranks(np.arange(draws, dtype=np.int64))
    assert 0 <= ranks.min() <= ranks.max() < titles
    assert (np.diff(ranks) >= 0).all()


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\0"))))
def test_fields_read_back_as_they_were(strings: list[str]) -> None:
    fields = text.field(text.pool(strings)).to_pylist()
    file = io.StringIO("".join(f"{field},end\n" for field in fields), newline="")
    assert [record[0] for record in csv.reader(file, strict=True)] == strings


def test_a_field_with_a_newline_is_in_quotes() -> None:
    assert text.field(text.pool(["a\nb", 'a"b', "a,b", "a"])).to_pylist() == [
        '"a\nb"',
        '"a""b"',
        '"a,b"',
        "a",
    ]


@pytest.mark.parametrize("string", ["René", "Cote D'Ivoire", 'Dale "Buzz" O\'Hara', "a\\b", "a, b"])
def test_literals_mean_the_string(string: str) -> None:
    assert ast.literal_eval(literal(string)) == string
    assert ast.literal_eval(escaped_literal(string)) == string
    assert escaped_literal(string).isascii()


def test_templates_give_different_wordings_with_the_right_article() -> None:
    wordings = expand(["a {thing}"], {"thing": ["apple", "pear"]}, 50)
    assert sorted(wordings) == ["a pear", "an apple"]


def test_rows_woven_from_pieces() -> None:
    woven = text.weave(text.pool(["x", "yy", ""]), np.array([0, 1, 1, 2, 0]), np.array([2, 2, 5]))
    assert woven.to_pylist() == ["xyy", "", "yyx"]


def test_lists_of_literals() -> None:
    assert text.listed(text.pool(["'a'", "'b'"]), np.array([0, 2])).to_pylist() == [
        "[]",
        "['a', 'b']",
    ]
