"""The Python API, starting with the examples of its own documentation."""

import doctest
from pathlib import Path

import numpy as np
import polars
import pyarrow as pa
import pytest

import caudal
import caudal.api
from caudal.errors import UsageError

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


def test_results_and_rejects_show_themselves_as_text(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('a,b\n1,one\n2,"open\nthree,3\n')
    result = caudal.sql("SELECT a, b FROM 'x.csv' ORDER BY a", data=tmp_path)
    assert repr(result).splitlines()[1:] == ["a      b", "─────  ───", "1      one", "three  3"]
    assert repr(result.rejects) == "1 row rejected\n  x: 1 row: unclosed quote (line 3)"
    answers = caudal.run("movies", data=CASE, queries="q3")
    assert "kind" in repr(answers)
    assert repr(answers.rejects) == "no rows were rejected"


def test_one_query_may_be_a_string() -> None:
    assert list(caudal.run("movies", data=CASE, queries="q3")) == ["q3"]


def test_one_text_is_one_score() -> None:
    assert caudal.sentiment("a wonderful book").tolist() == [1.0]
    assert caudal.sentiment([]).tolist() == []
    assert caudal.sentiment(None).tolist() == [0.0]


@pytest.mark.parametrize("texts", [7, [1, 2], pa.array([1.5]), [b"x", 3], {"a": 1}.items()])
def test_what_is_no_text_has_no_sentiment(texts: object) -> None:
    with pytest.raises(caudal.CaudalError, match="sentiment takes texts"):
        caudal.sentiment(texts)


@pytest.mark.parametrize("engine", ["embedded", "split"])
def test_sql_takes_engine_limit_and_gives_rejects(example_data: Path, engine: str) -> None:
    with (example_data / "movies_metadata.csv").open("a") as file:
        file.write("oops,Film,[],[],[],2001-02-03,5,9,nice\n")
    select = "SELECT count(*) AS films FROM movies"
    result = caudal.sql(select, "movies", example_data, engine=engine, memory_limit="1GB")
    assert result.rows() == [{"films": 3}]
    assert result.rejects.counts() == {"movies": {"id is not an integer": 1}}
    with pytest.raises(caudal.CaudalError, match="line 5: id is not an integer"):
        caudal.sql(select, "movies", example_data, engine=engine, strict=True)


def test_a_mistake_in_sql_is_the_askers(example_data: Path) -> None:
    for app in (None, "movies"):
        with pytest.raises(UsageError, match=r"^the query: .*nope"):
            caudal.sql("SELECT nope", app, example_data)
    with pytest.raises(UsageError, match="no engine 'quick'"):
        caudal.sql("SELECT 1", engine="quick")
    with pytest.raises(UsageError, match="name the file in the SELECT"):
        caudal.sql("SELECT 1", files={"a": "b"})
