"""A dataset gives the answers of its CSV files, to the last bit."""

import random
from pathlib import Path

import pyarrow as pa
import pytest
from tests.harness.shelves import ask_app, load_app

from caudal.application import find_application
from caudal.application.folder import load_application, shipped_applications
from caudal.datasets.compaction import compact
from caudal.datasets.shelf import Shelf, open_shelf
from caudal.embedded.dataset_ask import ask
from caudal.embedded.engine import run
from caudal.files.sources import Sources
from caudal.generate import generate
from caudal.run_options import RunOptions
from caudal.sql.adhoc import with_adhoc_query
from caudal.store import DirectoryStore

APPS = ("movies", "books")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    for app in APPS:
        generate(app, scale=0.003, seed=5, out=folder / app)
    return folder


@pytest.fixture(scope="module")
def shelves(generated: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shelf]:
    places = tmp_path_factory.mktemp("shelves")
    return {app: load_app(app, generated / app, places / app) for app in APPS}


def assert_same(one: pa.Table, other: pa.Table) -> None:
    assert one.schema == other.schema
    assert one.equals(other)


@pytest.mark.parametrize("app", APPS)
def test_the_shipped_queries_give_the_same_bits(
    app: str, generated: Path, shelves: dict[str, Shelf]
) -> None:
    expected = run(find_application(app), Sources(generated / app))
    found = ask_app(app, shelves[app])
    assert list(found) == list(expected)
    for name in expected:
        assert_same(found[name].table, expected[name].table)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("app", APPS)
def test_every_shipped_case_gives_the_same_bits(app: str, tmp_path: Path) -> None:
    application = load_application(shipped_applications()[app])
    for case in sorted((application.folder / "cases").iterdir()):
        expected = run(application, Sources(case))
        found = ask_app(app, load_app(app, case, tmp_path / case.name))
        for name in expected:
            assert_same(found[name].table, expected[name].table)


@pytest.mark.parametrize("app", APPS)
def test_the_cut_of_batches_and_compaction_change_no_bit(
    app: str, generated: Path, shelves: dict[str, Shelf], tmp_path: Path
) -> None:
    expected = ask_app(app, shelves[app])
    options = RunOptions(batch_bytes=50_000, threads=3)
    shelf = load_app(app, generated / app, tmp_path / "cut", options)
    compact(DirectoryStore(tmp_path / "cut"), 0.0, target_bytes=100_000)
    for one in (shelf, open_shelf(str(tmp_path / "cut"))):
        found = ask_app(app, one)
        for name in expected:
            assert_same(found[name].table, expected[name].table)


FILTERS = [
    "movie_id % 7 = 3", "rating >= 4.5", "user_id < 100 OR rating = 0.5", "rating IS NULL",
    "movie_id IN (SELECT id FROM movies WHERE budget > 0)", "user_id BETWEEN 3 AND 30",
    "EXISTS (SELECT 1 FROM credits WHERE credits.id = movie_id AND len(actors) > 3)",
]  # fmt: skip
SHAPES = [
    "SELECT * FROM ratings WHERE {0} ORDER BY ALL LIMIT 50",
    "SELECT count(*), sum(rating), min(movie_id), max(rating) FROM ratings WHERE {0} AND {1}",
    "SELECT movie_id % 10 AS g, avg(rating), count(DISTINCT user_id) FROM ratings WHERE {0} "
    "GROUP BY 1 ORDER BY 1",
    "SELECT title, release_date, genres, count(*) AS n FROM ratings JOIN movies ON id = movie_id "
    "WHERE {0} OR {1} GROUP BY ALL ORDER BY n DESC, title, release_date, genres LIMIT 20",
    "SELECT user_id, rating, row_number() OVER (PARTITION BY user_id ORDER BY movie_id, rating) "
    "FROM ratings WHERE {0} ORDER BY ALL LIMIT 100",
    "SELECT movie_id, list(rating) FROM ratings WHERE {0} GROUP BY 1 ORDER BY 1 LIMIT 20",
    "SELECT first(rating), last(user_id), string_agg(CAST(movie_id AS VARCHAR), ',') FROM "
    "(SELECT * FROM ratings WHERE {0} LIMIT 200)",
    "FROM movies SELECT id, budget, revenue, languages, overview ORDER BY id",
]  # fmt: skip


def test_random_queries_give_the_same_bits(generated: Path, shelves: dict[str, Shelf]) -> None:
    chance = random.Random(16)
    app, sources = find_application("movies"), Sources(generated / "movies")
    for shape in SHAPES * 2:
        sql = shape.format(*chance.sample(FILTERS, 2))
        asked = with_adhoc_query(app, sql)
        expected, found = run(asked, sources)["sql"], ask(asked, shelves["movies"])["sql"]
        assert_same(found.table, expected.table)


def test_rejected_rows_can_be_asked_with_their_records(
    generated: Path, shelves: dict[str, Shelf]
) -> None:
    rejects = run(find_application("books"), Sources(generated / "books")).rejects
    asked = with_adhoc_query(
        find_application("books"),
        'SELECT "table", reason, count(*) AS n FROM rejects GROUP BY ALL',
    )
    counts: dict[str, dict[str, int]] = {}
    for row in ask(asked, shelves["books"])["sql"].rows():
        counts.setdefault(row["table"], {})[row["reason"]] = row["n"]
    assert counts == rejects.counts()
    lines = (generated / "books" / "books_data.csv").read_bytes().split(b"\n")
    one = with_adhoc_query(
        find_application("books"),
        "SELECT line, record FROM rejects WHERE \"table\" = 'books' AND NOT contains(record, '\n')",
    )
    found = ask(one, shelves["books"])["sql"].rows()
    assert found
    for row in found:
        assert row["record"] == lines[row["line"] - 1].decode("utf-8", "replace")
