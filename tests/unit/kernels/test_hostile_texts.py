"""Texts made to take a parser's time: what they mean stays the same, and a record's worth of them
is read in passing. A kernel cannot be interrupted, and some of these took time that grew with the
square of their length: 39 seconds for one of 80 kB, 200 for an f-string of a megabyte."""

import pyarrow as pa
import pytest
from textblob import TextBlob

from caudal.kernels.literals import exact, items
from caudal.kernels.sentiment.column import score

RARE = "\u0130 "  # sends a text to the analyzer in plain Python
SHAPES = [
    ("a.", "x", ".)"),
    ("a.", "", ".)"),
    ("Bcd", "", ".)"),
    ("B" + "c" * 9, "", ".)"),
    ("(", "8)", ""),
    (":-)", "", ":o)"),
    ("(", ":o)", ")"),
    (".", ")", "..)"),
    (": ", "good", " )"),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("before", ["", "good ", RARE])
@pytest.mark.parametrize("count", [1, 2, 3, 50, 400])
def test_they_score_as_they_always_did(
    shape: tuple[str, str, str], before: str, count: int
) -> None:
    text = before + shape[0] * count + shape[1] + shape[2] * count + " bad film"
    assert score(pa.array([text])).tolist() == [TextBlob(text).sentiment.polarity]


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("before", ["", RARE])
def test_a_long_one_is_read_in_passing(shape: tuple[str, str, str], before: str) -> None:
    text = before + shape[0] * 300_000 + shape[1] + shape[2] * 300_000
    assert len(score(pa.array([text]))) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[f"' + "{1}" * 300_000 + '"]', None),
        ("['" + "\\'" * 400_000, None),
        ("[" + "'''" * 300_000, None),
        ("[rf'{1}', '" + "x" * 5_000 + "']", None),
        ("[r'\\d', # don't f'x'\n '" + "x" * 5_000 + "']", ["\\d", "x" * 5_000]),
        ("[u'a', b'b', '''it's " + "x" * 5_000 + "''']", ["a", "it's " + "x" * 5_000]),
    ],
)
def test_long_literals_mean_what_python_says(text: str, told: list[str] | None) -> None:
    assert items(pa.array([text])).to_pylist() == [told]


def test_what_is_looked_for_in_long_texts_changes_no_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = [
        "'a'",
        'b"x"',
        "'''c'd'''",
        "rb'\\''",
        "f'n'",
        "# it's f'x'\n",
        "'",
        "ab",
        "1",
        "'\\\n'",
    ]
    texts = [f"[{one},{other}]" for one in parts for other in parts]
    before = list(exact.read_lists(texts))
    monkeypatch.setattr(exact, "_SHORT", 0)
    assert list(exact.read_lists(texts)) == before
