"""The kernel against its oracle, TextBlob's default analyzer, on texts made to break it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textblob import TextBlob

from caudal.kernels.sentiment import exact, rules
from caudal.kernels.sentiment.column import compiled_lexicon, score

WORDS = compiled_lexicon().lexicon.words

SMALL_WORDS = ["a", "of", "is", "the", "I", "fox", "two", "film", "naïve", "—", "…", "<br", "/>"]
NEGATIONS = ["no", "not", "never", "NOT", "don't", "isn't", "n't", "DON'T", "don’t"]
INTENSIFIERS = ["very", "really", "extremely", "especially", "horribly", "less"]
ABBREVIATIONS = [*sorted(rules.ABBREVIATIONS), "U.S.", "T.", "Bcd.", "Old.", "w/"]
ODD_TOKENS = ["1998", "8", "(8)", "(!)", "( ! )", "...", "..", "o.", ".O", ".>", "&amp;", "K", "İ"]
MARKS = [*rules.SPLIT_PUNCTUATION, *rules.CURLY_QUOTES, *".<>/\\%°♥08xXoODPpbcsS"]
GAPS = ["", "", " ", " ", " ", "  ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\t", "\xa0", "\x85", "\x1c"]

pieces = st.one_of(
    st.sampled_from(sorted(WORDS)),
    st.sampled_from(NEGATIONS + INTENSIFIERS + SMALL_WORDS),
    st.sampled_from(ABBREVIATIONS + ODD_TOKENS + [rules.SENTENCE_END]),
    st.sampled_from(MARKS),
    st.sampled_from(sorted(rules.faces())),
)
cased = st.builds(
    lambda piece, change: change(piece),
    pieces,
    st.sampled_from([str, str, str, str.upper, str.capitalize, " ".join]),
)
texts = st.lists(st.tuples(cased, st.sampled_from(GAPS)), max_size=14).map(
    lambda parts: "".join(piece + gap for piece, gap in parts)
)


def oracle(text: str) -> float:
    return float(TextBlob(text).sentiment.polarity)


def score_one(text: str) -> float:
    return float(score(pa.array([text]))[0])


@settings(max_examples=1500)
@given(texts)
def test_equals_the_analyzer_to_the_last_bit_on_hostile_texts(text: str) -> None:
    assert score_one(text) == oracle(text)


@settings(max_examples=300)
@given(st.text())
def test_equals_the_analyzer_on_any_unicode_text(text: str) -> None:
    assert score_one(text) == oracle(text)


@settings(max_examples=500)
@given(texts)
def test_the_plain_python_port_equals_the_analyzer(text: str) -> None:
    assert exact.polarity(text, WORDS) == oracle(text)


@pytest.mark.parametrize(
    ("text", "polarity"),
    [
        ("", 0.0),
        ("nothing to say", 0.0),
        ("a good film", 0.7),
        ("a very good film", 0.9099999999999999),
        ("not good", -0.35),
        ("not a very good film", -0.26923076923076916),
        ("good!", 0.875),
        ("good (!)", 0.35),
        ("great :)", 0.65),
    ],
)
def test_known_polarities(text: str, polarity: float) -> None:
    assert score_one(text) == polarity == oracle(text)


@pytest.mark.parametrize(
    "text",
    [
        "Old... but good",  # an ellipsis wins over an abbreviation
        "good (1998) really (8) nice",  # 8 and ) are glued, as in the face 8)
        "fine<br /><br />:) good",  # so are > and :)
        "=(!) good",  # the sarcasm mark is glued before any face
        "really :o) good :o good :c ) bad",  # :o) is read before :o
        "not:\n\n) good",  # an empty line does not part a face from its )
        ": > : )",  # a face that is complete gives nothing to the next
        "really no good; really not good",
        "a well-known, over-the-top f*cking 2nd film",
        "great,but film.The not\xa0good",
        "good" + "!" * 70 + " bad",
        "x" * 63 + " good " + "y" * 64 + " bad",
        "I don't like, I couldn't love, I DON'T love",
        "END-OF-SENTENCE not END-OF-SENTENCE good",
    ],
)
def test_quirks_of_the_analyzer_are_kept(text: str) -> None:
    assert score_one(text) == oracle(text)


@pytest.mark.parametrize("offset", range(70))
def test_words_across_every_block_boundary(offset: int) -> None:
    text = "." * offset + " not very good, extraordinarily bad (ridiculous!) :-) "
    assert score_one(text) == oracle(text)


def test_every_lexicon_word_is_found_in_any_case() -> None:
    forms = sorted(WORDS)
    found = score(pa.array(forms + [form.upper() for form in forms]))
    assert found.tolist() == [oracle(form) for form in forms] * 2


def test_every_face_is_found() -> None:
    faces = [f"really {face} good" for face in rules.faces()]
    assert score(pa.array(faces)).tolist() == [oracle(face) for face in faces]


def test_scores_stay_in_range() -> None:
    scores = score(pa.array([f"{word}!!! very {word}!!!" for word in sorted(WORDS)]))
    assert np.abs(scores).max() <= 1.0
