"""Values of `sentiment` are kept with a dataset; answers are those of the CSV files, to the bit."""

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.harness.misbehaving_stores import Around, DiedError, Dying, Result
from tests.harness.shelves import load_app

from caudal.application import find_application
from caudal.datasets import computed, keys
from caudal.datasets.compaction import compact
from caudal.datasets.shelf import Shelf, open_shelf
from caudal.datasets.vacuum import vacuum
from caudal.embedded import dataset_values, dataset_writing
from caudal.embedded.dataset_ask import ask
from caudal.embedded.dataset_load import open_loader
from caudal.embedded.dataset_session import open_dataset_session
from caudal.embedded.dataset_sources import file_source
from caudal.embedded.engine import run
from caudal.errors import StoreError
from caudal.files.sources import Sources
from caudal.generate import generate
from caudal.model import Query
from caudal.run_options import RunOptions, Silent
from caudal.sql.adhoc import with_adhoc_query
from caudal.store import DirectoryStore
from caudal.store.port import entries

BOOKS = find_application("books")
FAR = 10.0**10  # seconds: long after everything


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("computed") / "books"
    generate("books", scale=0.002, seed=7, out=folder)
    return folder


@pytest.fixture(scope="module")
def loaded(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset whose reviews are in several files."""
    place = tmp_path_factory.mktemp("loaded") / "shelf"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset_writing, "BATCH_BYTES", 1_000_000)
        shelf = load_app("books", data, place, RunOptions(batch_bytes=200_000, threads=2))
    assert len(shelf.contents.tables["reviews"]) > 3
    return place


@pytest.fixture
def shelf(loaded: Path, tmp_path: Path) -> Shelf:
    shutil.copytree(loaded, tmp_path / "shelf")
    return open_shelf(
        str(tmp_path / "shelf"), store=DirectoryStore(tmp_path / "shelf", fsync=False)
    )


@pytest.fixture(autouse=True)
def small_files_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed, "LEAST_BYTES", 0)


@dataclass
class Scored:
    """How many texts were scored."""

    texts: int = 0


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> Scored:
    found, score = Scored(), dataset_values._score

    def counting(texts: object, batch: object, missing: object, value: object) -> None:
        found.texts += int(np.count_nonzero(missing))  # type: ignore[call-overload]
        score(texts, batch, missing, value)  # type: ignore[arg-type]

    monkeypatch.setattr(dataset_values, "_score", counting)
    return found


def newest(shelf: Shelf) -> Shelf:
    return open_shelf(shelf.place)


def q5(shelf: Shelf, **given: str) -> pa.Table:
    return ask(BOOKS, shelf, ["q5"], given)["q5"].table


def kept_keys(shelf: Shelf) -> list[str]:
    return [one.key for one in entries(shelf.store, keys.COMPUTED)]


def test_a_value_is_computed_once(data: Path, shelf: Shelf, scored: Scored) -> None:
    expected = run(BOOKS, Sources(data), ["q5"])["q5"].table
    assert q5(shelf).equals(expected)
    first = scored.texts
    assert 0 < first < sum(one.rows for one in shelf.contents.tables["reviews"])
    assert q5(shelf).equals(expected)
    assert scored.texts == first, "all values were kept"
    other = {"category": "History"}
    assert q5(shelf, **other).equals(run(BOOKS, Sources(data), ["q5"], other)["q5"].table)
    more = scored.texts - first
    assert more > 0
    for _ in range(2):
        assert q5(shelf, **other).equals(run(BOOKS, Sources(data), ["q5"], other)["q5"].table)
        assert q5(shelf).equals(expected)
    assert scored.texts == first + more, "what two questions need is kept together"
    assert len(kept_keys(shelf)) == len(shelf.contents.tables["reviews"]), "no smaller ones stay"


def test_an_append_costs_the_new_rows(
    data: Path, shelf: Shelf, scored: Scored, tmp_path: Path
) -> None:
    q5(shelf)
    first = scored.texts
    lines = (data / "Books_rating.csv").read_text(encoding="utf-8").split("\n")
    more = tmp_path / "more.csv"
    more.write_text("\n".join([lines[0], *(line for line in lines[1:40] if line.count(",") > 8)]))
    with open_loader(BOOKS, shelf.place, shelf.store) as loader:
        loader.load([file_source("reviews", more)])
    both = Sources(data, {"reviews": [str(data / "Books_rating.csv"), str(more)]})
    assert q5(newest(shelf)).equals(run(BOOKS, both, ["q5"])["q5"].table)
    assert scored.texts - first <= 40


FILTERS = [
    "score >= 4", "title IN (SELECT title FROM books WHERE year < 1990)", "length(text) % 3 = 1",
    "title LIKE 'A%'", "score < 3 OR title > 'M'", "sentiment(text) > 0.1", "text IS NOT NULL",
]  # fmt: skip
SHAPES = [
    "SELECT title, sentiment(text) AS s FROM reviews WHERE {0} ORDER BY title, s LIMIT 40",
    "SELECT count(*), sum(sentiment(text)), max(sentiment(title)) FROM reviews WHERE {0} AND {1}",
    "SELECT b.year, sum(CAST(sentiment(r.text) AS DECIMAL(18, 17))) FROM reviews r "
    "JOIN books b USING (title) WHERE {0} GROUP BY 1 ORDER BY 1",
    "SELECT title, list(sentiment(text)) FROM reviews WHERE {0} GROUP BY 1 ORDER BY 1 LIMIT 9",
    "SELECT sentiment(text), sentiment(publisher) FROM reviews LEFT JOIN books USING (title) "
    "WHERE {0} AND NOT ({1}) ORDER BY ALL LIMIT 30",
    "SELECT title, rank() OVER (ORDER BY sentiment(text), title) AS n FROM reviews WHERE {0} "
    "ORDER BY n, title LIMIT 25",
]  # fmt: skip


def test_random_questions_give_the_bits_of_the_csv_files(data: Path, shelf: Shelf) -> None:
    chance = random.Random(54)
    for shape in SHAPES * 2:
        sql = shape.format(*chance.sample(FILTERS, 2))
        asked = with_adhoc_query(BOOKS, sql)
        expected = run(asked, Sources(data), ["sql"])["sql"].table
        for _ in range(2):
            assert ask(asked, shelf, ["sql"])["sql"].table.equals(expected), sql


def test_queries_with_different_computed_columns_do_not_share_their_rows(
    data: Path, shelf: Shelf
) -> None:
    texts = {
        "titles": "SELECT sum(sentiment(title)) FROM books WHERE year = 1995",
        "both": "SELECT sum(sentiment(text)), count(b.authors), max(b.publisher) FROM reviews r "
        "JOIN books b USING (title)",
        "plain": "SELECT count(*), max(text) FROM reviews",
    }
    queries = tuple(Query(name, name, sql, f"{name}.sql") for name, sql in texts.items())
    app = replace(BOOKS, queries=queries, parameters={})
    expected, found = run(app, Sources(data)), ask(app, shelf)
    for name in texts:
        assert found[name].table.equals(expected[name].table)


def test_a_session_uses_and_keeps_values(data: Path, shelf: Shelf, scored: Scored) -> None:
    asked = with_adhoc_query(BOOKS, "SELECT sum(sentiment(text)) AS s FROM reviews WHERE score > 3")
    only = replace(asked, queries=tuple(one for one in asked.queries if one.name == "sql"))
    expected = run(only, Sources(data))["sql"].table
    with open_dataset_session(BOOKS, shelf, RunOptions(threads=2)) as session:
        for _ in range(2):
            with session.stream(only, Sources(data), Silent()) as result:
                assert pa.concat_tables(result.parts).equals(expected)
    first = scored.texts
    assert ask(only, shelf)["sql"].table.equals(expected)
    assert scored.texts == first > 0


def damage_cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def damage_bit(data: bytes) -> bytes:
    return bytes([*data[:-40], data[-40] ^ 1, *data[-39:]])


@pytest.mark.parametrize("damage", [damage_cut, damage_bit, lambda data: b""])
def test_damaged_values_are_computed_again(
    damage: Callable[[bytes], bytes], shelf: Shelf, scored: Scored
) -> None:
    expected = q5(shelf)
    first = scored.texts
    for key in kept_keys(shelf):
        path = Path(shelf.place, key)
        path.write_bytes(damage(path.read_bytes()))
    assert q5(shelf).equals(expected)
    assert scored.texts == 2 * first
    assert q5(shelf).equals(expected)
    assert scored.texts == 2 * first, "sound ones took the place of the damaged"


def test_values_of_another_file_are_not_taken(shelf: Shelf, scored: Scored) -> None:
    """A name that lies: the bytes are whole, but belong to another file."""
    expected, first = q5(shelf), scored.texts
    found = kept_keys(shelf)
    for one, other in zip(found, [*found[1:], found[0]], strict=True):
        digest_of_file = other.rpartition("/")[2].partition("-")[0]
        folder, _, name = one.rpartition("/")
        Path(shelf.place, one).rename(Path(shelf.place, folder, digest_of_file + name[32:] + "x"))
    for path in Path(shelf.place, keys.COMPUTED).rglob("*x"):
        path.rename(path.with_name(path.name[:-1]))
    assert q5(shelf).equals(expected)
    assert scored.texts == 2 * first


@pytest.mark.parametrize("name", ["kernels_version", "__version__"])
def test_values_of_other_versions_are_not_used(
    name: str, shelf: Shelf, scored: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, first = q5(shelf), scored.texts
    other = (lambda: "other") if name == "kernels_version" else "0.other"
    monkeypatch.setattr(computed, name, other)
    computed._versions.cache_clear()
    try:
        assert q5(shelf).equals(expected)
        assert scored.texts == 2 * first
        vacuum(shelf.store, FAR, 0.0, 0.0)
        assert len(kept_keys(shelf)) == len(shelf.contents.tables["reviews"])
        assert q5(shelf).equals(expected)
        assert scored.texts == 2 * first
    finally:
        monkeypatch.undo()
        computed._versions.cache_clear()


def test_a_vacuum_deletes_values_of_files_that_were_compacted(shelf: Shelf, scored: Scored) -> None:
    expected = q5(shelf)
    compact(shelf.store, 0.0)
    assert q5(newest(shelf)).equals(expected)
    assert q5(shelf).equals(expected), "of the version before, which is still there"
    twice = scored.texts
    vacuum(shelf.store, FAR, 0.0, 0.0)
    merged = newest(shelf)
    assert len(kept_keys(merged)) == len(merged.contents.tables["reviews"])
    assert q5(merged).equals(expected)
    assert scored.texts == twice


def test_young_values_survive_a_vacuum(shelf: Shelf) -> None:
    q5(shelf)
    compact(shelf.store, 0.0)
    before = kept_keys(shelf)
    vacuum(shelf.store, 0.0, 0.0)
    assert kept_keys(shelf) == before


def test_a_question_that_is_killed_anywhere_spoils_nothing(shelf: Shelf) -> None:
    expected = q5(shelf)
    for key in kept_keys(shelf):
        shelf.store.delete(key)
    for at in range(1000):
        dying = Dying(shelf.store, at)
        try:
            ask(BOOKS, replace(shelf, store=dying), ["q5"], options=RunOptions(threads=1))
        except DiedError:
            assert q5(shelf).equals(expected)
            for key in kept_keys(shelf)[at % 3 :]:
                shelf.store.delete(key)
        else:
            assert at > 3, "the question used the store"
            return


@dataclass
class Refusing(Around):
    """A store that can only be read, or that does not even answer."""

    names: tuple[str, ...] = ()

    def operate(self, name: str, key: str, do: Callable[[], Result]) -> Result:
        if name in self.names and key.startswith(keys.COMPUTED):
            raise StoreError("the file system is read-only")
        return do()


@pytest.mark.parametrize("names", [("create", "delete"), ("read",), ("list",), ("delete",)])
def test_a_question_needs_no_kept_values(names: tuple[str, ...], shelf: Shelf) -> None:
    expected = q5(shelf)
    for _ in range(2):
        assert q5(replace(shelf, store=Refusing(shelf.store, names))).equals(expected)


def test_values_that_are_swept_meanwhile_are_computed_again(shelf: Shelf, scored: Scored) -> None:
    expected = q5(shelf)

    @dataclass
    class Swept(Around):
        def operate(self, name: str, key: str, do: Callable[[], Result]) -> Result:
            if name == "read" and key.startswith(keys.COMPUTED):
                self.store.delete(key)
            return do()

    first = scored.texts
    assert q5(replace(shelf, store=Swept(shelf.store))).equals(expected)
    assert scored.texts == 2 * first


def test_small_files_are_not_kept(
    shelf: Shelf, scored: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computed, "LEAST_BYTES", 1 << 30)
    assert q5(shelf).equals(q5(shelf))
    assert scored.texts > 0
    assert not kept_keys(shelf)


def test_what_is_not_known_to_be_safe_is_left_to_duckdb(
    data: Path, shelf: Shelf, scored: Scored
) -> None:
    for sql in (
        "SELECT sum(sentiment(CAST(score AS VARCHAR))) AS s FROM reviews",
        "SELECT sum(sentiment(lower(text))) AS s FROM reviews",
        "SELECT max(sentiment(authors[1])) AS s FROM books",
        "SELECT max(sentiment(record)) AS s FROM rejects WHERE line < 0",
    ):
        asked = with_adhoc_query(BOOKS, sql)
        found = ask(asked, shelf, ["sql"])["sql"].table
        if "rejects" not in sql:
            assert found.equals(run(asked, Sources(data), ["sql"])["sql"].table)
            assert scored.texts == 0
