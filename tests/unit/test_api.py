"""The Python API, starting with the examples of its own documentation."""

import doctest
from pathlib import Path

import numpy as np
import polars
import pyarrow as pa
import pytest

import caudal
import caudal.api

CASE = Path(caudal.__file__).parent / "apps" / "movies" / "cases" / "a_single_film"


@pytest.fixture
def example_data(tmp_path: Path) -> Path:
    header = (
        "id,title,genres,production_countries,spoken_languages,release_date,budget,revenue,overview"
    )
    rows = "".join(
        f"{n},Film {n},[],\"[{{'name': 'Peru'}}]\",[],2001-02-03,5,9,nice\n" for n in "123"
    )
    (tmp_path / "movies_metadata.csv").write_text(f"{header}\n{rows}")
    return tmp_path


def test_the_documented_examples(example_data: Path) -> None:
    outcome = doctest.testmod(caudal.api, extraglobs={"example_data": example_data})
    assert outcome.attempted >= 8
    assert outcome.failed == 0


def test_answers_convert_and_show_themselves() -> None:
    answers = caudal.run("movies", data=CASE)
    assert list(answers) == ["q1", "q2", "q3", "q4", "q5"]
    best = answers["q3"]
    assert best.to_arrow().column_names == ["kind", "title", "rating"]
    assert best.to_polars().shape == (2, 3)
    assert list(best.to_pandas()["kind"]) == ["MAX", "MIN"]
    assert [row["kind"] for row in best] == ["MAX", "MIN"]
    assert "<table>" in best._repr_html_()
    assert "q5" in answers._repr_html_()
    assert not answers.rejects


def test_html_is_escaped() -> None:
    result = caudal.sql("SELECT '<script>' AS x")
    assert "<script>" not in result._repr_html_()


@pytest.mark.parametrize(
    "texts",
    [
        ["a wonderful book", None, ""],
        pa.array(["a wonderful book", None, ""]),
        pa.chunked_array([["a wonderful book"], [None, ""]]),
        polars.Series(["a wonderful book", None, ""]),
    ],
    ids=["list", "array", "chunked", "polars"],
)
def test_sentiment_takes_any_column(texts: object) -> None:
    scores = caudal.sentiment(texts)
    assert scores.dtype == np.float64
    assert scores.tolist() == [1.0, 0.0, 0.0]


def test_only_what_the_chosen_queries_need_is_read(tmp_path: Path) -> None:
    """A column that no chosen query needs may be missing; one that is needed is named."""
    (tmp_path / "Books_rating.csv").write_text("Title,review/score\nA,5\n")
    (tmp_path / "books_data.csv").write_text(
        "Title,authors,publisher,publishedDate,categories\nA,['X'],P,1995,['Fiction']\n"
    )
    answers = caudal.run("books", tmp_path, ["q3", "q4"], parameters={"min_reviews": 1})
    assert answers["q4"].rows() == [{"title": "A", "mean_score": 5.0}]
    with pytest.raises(caudal.CaudalError, match="no column 'review/text', which table reviews"):
        caudal.run("books", tmp_path, ["q5"])


def test_memory_limit_and_strict() -> None:
    answers = caudal.run("movies", data=CASE, memory_limit="1GB", strict=True)
    assert len(answers["q3"]) == 2
    with pytest.raises(caudal.CaudalError, match="is not a size"):
        caudal.run("movies", data=CASE, memory_limit="much")
