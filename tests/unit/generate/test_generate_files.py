"""The shape of the generated files: headers, counts, oddities, and what is malformed."""

from collections import Counter
from pathlib import Path

import pytest
from tests.unit.generate.files import generated, records, rows

from caudal.generate.dice import Dice
from caudal.generate.generator import _sheets
from caudal.generate.sheet import faulty_rows

HEADERS = {
    "movies_metadata.csv": (
        "adult,belongs_to_collection,budget,genres,homepage,id,imdb_id,original_language,"
        "original_title,overview,popularity,poster_path,production_companies,"
        "production_countries,release_date,revenue,runtime,spoken_languages,status,tagline,"
        "title,video,vote_average,vote_count"
    ),
    "credits.csv": "cast,crew,id",
    "ratings.csv": "userId,movieId,rating,timestamp",
    "books_data.csv": (
        "Title,description,authors,image,previewLink,publisher,publishedDate,infoLink,"
        "categories,ratingsCount"
    ),
    "Books_rating.csv": (
        "Id,Title,Price,User_id,profileName,review/helpfulness,review/score,review/time,"
        "review/summary,review/text"
    ),
}
ROWS = {
    "movies_metadata.csv": 454,
    "credits.csv": 454,
    "ratings.csv": 260_242,
    "books_data.csv": 2_124,
    "Books_rating.csv": 30_000,
}


@pytest.fixture(scope="module", params=[1])
def movies(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated("movies", request.param, tmp_path_factory)


@pytest.fixture(scope="module", params=[1])
def books(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated("books", request.param, tmp_path_factory)


def check_file(path: Path) -> None:
    """The header is exact, only spoiled records may be short, no CR, no byte order mark."""
    header, *lines = records(path)
    assert ",".join(header) == HEADERS[path.name]
    widths = [len(fields) for fields in lines]
    assert len(widths) == ROWS[path.name]
    short = sum(width != HEADERS[path.name].count(",") + 1 for width in widths)
    assert short <= len(widths) / 2_000 + 1
    content = path.read_bytes()
    assert b"\r" not in content
    assert not content.startswith(b"\xef\xbb\xbf")
    assert content.endswith(b"\n")


@pytest.mark.parametrize("name", ["movies_metadata.csv", "credits.csv", "ratings.csv"])
def test_shape_of_movies(movies: Path, name: str) -> None:
    check_file(movies / name)


@pytest.mark.parametrize("name", ["books_data.csv", "Books_rating.csv"])
def test_shape_of_books(books: Path, name: str) -> None:
    check_file(books / name)


def test_oddities_of_films(movies: Path) -> None:
    content = (movies / "credits.csv").read_text(encoding="utf-8")
    assert '""' in content
    assert "\\u00" in content
    assert not content.isascii()
    films = list(rows(movies / "movies_metadata.csv"))
    assert any(row["production_countries"] == "[]" for row in films)
    assert any(row["budget"] == "0" for row in films)
    assert any(not row["overview"] for row in films)


def test_oddities_of_books(books: Path) -> None:
    catalogue = list(rows(books / "books_data.csv"))
    lengths = Counter(len(row["publishedDate"]) for row in catalogue)
    assert {0, 4, 7, 10} <= set(lengths)
    assert any("\n" in row["review/text"] for row in rows(books / "Books_rating.csv"))
    assert any('"' in row["profileName"] for row in rows(books / "Books_rating.csv"))
    assert any(not row["categories"] for row in catalogue)


def test_titles_of_books_are_unique(books: Path) -> None:
    titles = [row["Title"] for row in rows(books / "books_data.csv") if row["Title"]]
    assert len(titles) == len(set(titles))


def test_reviews_name_books_of_the_catalogue(books: Path) -> None:
    titles = {row["Title"] for row in rows(books / "books_data.csv")}
    unknown = {row["Title"] for row in rows(books / "Books_rating.csv")} - titles
    assert len(unknown) <= 2, "only the books whose own record is spoiled may be missing"


def test_review_texts_are_long_enough_and_differ(books: Path) -> None:
    texts = [row["review/text"] for row in rows(books / "Books_rating.csv")]
    assert 700 < sum(len(text.encode()) for text in texts) / len(texts) < 900
    assert len(set(texts)) > 0.97 * len(texts)


def test_ratings_are_halves_from_a_half_to_five(movies: Path) -> None:
    given = Counter(row["rating"] for row in rows(movies / "ratings.csv"))
    assert set(given) - {"n/a"} == {f"{half / 2}" for half in range(1, 11)}


def test_one_record_in_two_thousand_is_spoiled_and_the_ways_take_turns() -> None:
    dice = Dice(7)
    for app in ("movies", "books"):
        for sheet in _sheets(app, 1.0, dice):
            spoiled = faulty_rows(sheet.rows, sheet.name, dice)
            assert abs(len(spoiled) - sheet.rows / 2_000) <= 1
            assert (spoiled // 2_000).tolist() == sorted(set((spoiled // 2_000).tolist()))


def test_every_way_to_spoil_changes_a_record() -> None:
    for app in ("movies", "books"):
        for sheet in _sheets(app, 1.0, Dice(7)):
            fields = [f"good {i}" for i in range(len(sheet.header))]
            assert all(fault(fields) != fields for fault in sheet.faults)
