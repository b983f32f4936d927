"""Datasets from Python."""

import doctest
from itertools import islice
from pathlib import Path

import pandas
import polars
import pyarrow as pa
import pytest

import caudal
import caudal.dataset_api
from caudal.errors import UsageError
from caudal.local import engines
from caudal.run_options import Engine

CASE = Path(caudal.__file__).parent / "apps" / "movies" / "cases" / "a_single_film"
RATING = {"userId": 7, "movieId": 1, "rating": 4.5}


@pytest.fixture
def shelf(tmp_path: Path) -> caudal.Dataset:
    caudal.load("movies", CASE, to=tmp_path / "shelf")
    return caudal.Dataset(tmp_path / "shelf")


def ratings(shelf: caudal.Dataset) -> int:
    (row,) = shelf.sql("SELECT count(*) AS n FROM ratings", "movies").rows()
    return int(row["n"])


def test_the_documented_examples(tmp_path: Path) -> None:
    found = doctest.DocTestFinder().find(caudal.dataset_api)
    runner = doctest.DocTestRunner()
    for place, test in enumerate(found):
        test.globs |= {"example_data": films(tmp_path), "new_folder": tmp_path / str(place)}
        runner.run(test)
    assert runner.summarize().failed == 0


def films(folder: Path) -> Path:
    header = (
        "id,title,genres,production_countries,spoken_languages,release_date,budget,revenue,overview"
    )
    lines = [f"{n},Film {n},[],[],[],2001-02-03,5,9,nice" for n in "123"]
    (folder / "movies_metadata.csv").write_text("\n".join([header, *lines]) + "\n")
    (folder / "credits.csv").write_text("id,cast\n")
    (folder / "ratings.csv").write_text("userId,movieId,rating\n")
    return folder


def test_answers_are_those_of_the_files(shelf: caudal.Dataset) -> None:
    found, expected = shelf.run("movies"), caudal.run("movies", CASE)
    assert {name: found[name].rows() for name in found} == {
        name: expected[name].rows() for name in expected
    }
    assert list(shelf.run("movies", "q3")) == ["q3"]


@pytest.mark.parametrize(
    "rows",
    [
        [RATING, {**RATING, "userId": "8"}],
        pa.table({name: [value, value] for name, value in RATING.items()}),
        polars.DataFrame([RATING, RATING]),
        pandas.DataFrame([RATING, RATING]),
    ],
    ids=["dictionaries", "arrow", "polars", "pandas"],
)
def test_rows_of_many_kinds_can_be_appended(shelf: caudal.Dataset, rows: object) -> None:
    before = ratings(shelf)
    report = shelf.append("movies", "ratings", rows)
    assert (report.version, report.rows) == (2, 2)
    assert ratings(shelf) == before + 2


def test_rows_with_a_key_are_appended_once(shelf: caudal.Dataset) -> None:
    before = ratings(shelf)
    for _ in range(2):
        shelf.append("movies", "ratings", [RATING], key="monday")
        shelf.append("movies", "ratings", [RATING])
    assert ratings(shelf) == before + 3


def test_bad_rows_are_rejected_with_their_record(shelf: caudal.Dataset) -> None:
    report = shelf.append("movies", "ratings", [{**RATING, "userId": "somebody"}])
    assert report.rejects.total == 1
    (row,) = shelf.sql(
        "SELECT line, record FROM rejects ORDER BY ALL DESC LIMIT 1", "movies"
    ).rows()
    assert (row["line"], "somebody" in row["record"]) == (1, True)


def test_what_holds_no_rows_is_refused(shelf: caudal.Dataset) -> None:
    with pytest.raises(UsageError, match="append takes rows"):
        shelf.append("movies", "ratings", 7)
    with pytest.raises(UsageError, match="movies has no table 'x'"):
        shelf.append("movies", "x", [RATING])
    with pytest.raises(UsageError, match="has no table 'x'; its tables are: movies"):
        shelf.table("x")


def test_a_table_goes_to_other_libraries(shelf: caudal.Dataset) -> None:
    shelf.append("movies", "ratings", [RATING])
    expected = shelf.sql("SELECT * FROM ratings", "movies").to_arrow().to_pylist()
    table = shelf.table("ratings")
    assert table.to_arrow().to_pylist() == expected
    assert table.to_polars().collect().to_dicts() == expected
    assert table.to_duckdb().fetchall() == [tuple(row.values()) for row in expected]


def test_a_table_without_files_has_its_columns(tmp_path: Path) -> None:
    caudal.load("movies", films(tmp_path), to=tmp_path / "shelf")
    table = caudal.Dataset(tmp_path / "shelf").table("ratings")
    for names in (table.to_arrow().column_names, table.to_polars().collect().columns):
        assert names == ["user_id", "movie_id", "rating"]


def test_watch_answers_every_new_version(shelf: caudal.Dataset) -> None:
    seen = []
    for version, answers in islice(shelf.watch("movies", "q3", poll_seconds=0.0), 3):
        seen.append((version, len(answers["q3"])))
        shelf.append("movies", "ratings", [RATING])
    assert [version for version, _ in seen] == [1, 2, 3]


def test_an_old_version_can_be_asked(shelf: caudal.Dataset) -> None:
    before = ratings(shelf)
    shelf.append("movies", "ratings", [RATING])
    old = caudal.Dataset(shelf.place, as_of=1)
    assert (ratings(old), ratings(shelf)) == (before, before + 1)
    assert repr(old) == f"Dataset({shelf.place!r}, as_of=1)"
    assert [one.kind for one in shelf.versions()] == ["create", "load", "load"]


def test_any_options_of_spark_ask_for_it(
    shelf: caudal.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that say nothing more."""
    asked: list[Engine] = []

    def ask_with(engine: Engine, *words: object) -> None:
        asked.append(engine)
        raise UsageError("enough is known")

    monkeypatch.setattr(engines, "ask_with", ask_with)
    for spark in (None, caudal.SparkOptions(), caudal.SparkOptions(master="local[1]"), object()):
        with pytest.raises(UsageError, match="enough is known"):
            shelf.run("movies", spark=spark)
        with pytest.raises(UsageError, match="enough is known"):
            shelf.sql("SELECT 1", "movies", spark=spark)
    assert asked == [Engine.EMBEDDED] * 2 + [Engine.SPARK] * 6
