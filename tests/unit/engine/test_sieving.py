"""Dropping rows before they are cleaned changes no answer, no count and no reject."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from caudal.duck.clean import Select, clean_piece
from caudal.duck.prefilter import KeyFilters
from caudal.embedded import cleaners, engine
from caudal.errors import RejectedRowError
from caudal.files.cleaning import Cleaning
from caudal.files.pieces import Cleaned, FilePiece
from caudal.files.sources import Sources
from caudal.model import Application, Query, RejectedRow, Table
from caudal.results.answers import Answers
from caudal.run_options import RunOptions
from caudal.sql import prefilters

FILMS = Table(
    "films",
    ("films.csv",),
    ("id", "country"),
    "SELECT to_integer(raw.id) AS id, raw.country AS country FROM raw",
    "films.sql",
)
RATINGS = Table(
    "ratings",
    ("ratings.csv",),
    ("film", "score", "text"),
    """SELECT film, score, text, CASE WHEN film IS NULL THEN 'no film'
         WHEN score IS NULL THEN 'no score' END AS reject
       FROM (SELECT to_integer(raw.film) AS film,
         TRY_CAST(raw.score AS DECIMAL(18, 9)) AS score, raw.text AS text FROM raw)""",
    "ratings.sql",
)
QUERIES = {
    "joined": """SELECT f.id, count(*) AS n, sum(r.score) AS s FROM films f
       JOIN ratings r ON r.film = f.id WHERE f.country = 'AR' GROUP BY f.id ORDER BY f.id""",
    "grouped": """SELECT f.id, r.n, r.s FROM films f JOIN (SELECT film, count(*) AS n,
       sum(score) AS s FROM ratings GROUP BY film) r ON r.film = f.id
       WHERE f.country = 'ES' ORDER BY f.id""",
    "listed": """SELECT film, sum(CAST(sentiment(text) AS DECIMAL(18, 9))) AS s FROM ratings
       WHERE film IN (SELECT id FROM films WHERE country = 'AR') AND score > 1
       GROUP BY film ORDER BY film""",
}
WORDS = ("good", "awful", "", 'said ""fine""', "bad, very bad")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ratings of films near and far, with odd numbers, nulls, damage and quotes."""
    films = [f"{i},{('AR', 'ES', 'FR', 'DE')[i % 4]}" for i in range(80)]
    (tmp_path / "films.csv").write_text("\n".join(["id,country", *films]) + "\n")
    rows = [f'{i % 97},{i % 11}.5,"{WORDS[i % 5]}"' for i in range(4000)]
    rows[7::100] = [f'+{i},1e0,"great"' for i in range(len(rows[7::100]))]  # odd, and right
    rows[11::300] = ["x,1,bad"] * len(rows[11::300])
    rows[13::300] = ["4,,bad"] * len(rows[13::300])
    rows[17::500] = ["4,2"] * len(rows[17::500])
    (tmp_path / "ratings.csv").write_text("\n".join(["film,score,text", *rows]) + "\n")
    return tmp_path


def answer(folder: Path, name: str, **overrides: list[str]) -> tuple[Answers, list[RejectedRow]]:
    rejected: list[RejectedRow] = []
    query = Query(name, name, QUERIES[name], f"{name}.sql")
    app = Application("app", "", folder, (FILMS, RATINGS), (query,))
    options = RunOptions(batch_bytes=8192, reject_sink=rejected.append)
    return engine.run(app, Sources(folder, overrides), options=options), rejected


@pytest.fixture
def without_sieve() -> Iterator[None]:
    """The embedded engine as it is when nothing is understood of a table's SQL."""
    with patch.object(prefilters, "project", return_value=None):
        yield


def facts(run: tuple[Answers, list[RejectedRow]]) -> object:
    answers, rejected = run
    tables = [dataclasses.replace(table, seconds=0) for table in answers.tables]
    return {name: result.rows() for name, result in answers.items()}, tables, rejected


@pytest.mark.parametrize("name", QUERIES)
def test_answers_counts_and_rejects_stay_the_same(
    name: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    prefiltered = facts(answer(folder, name))
    request.getfixturevalue("without_sieve")
    assert prefiltered == facts(answer(folder, name))


@pytest.mark.parametrize("name", QUERIES)
def test_parquet_gives_the_same_answers(name: str, folder: Path) -> None:
    rows = pa.csv.read_csv(
        folder / "films.csv", convert_options=pa.csv.ConvertOptions(strings_can_be_null=True)
    )
    pq.write_table(rows, folder / "films.parquet")
    typed = answer(folder, name, films=["films.parquet"])[0]
    assert typed[name].rows() == answer(folder, name)[0][name].rows()


def test_files_of_different_kinds_are_cleaned_by_one_table(folder: Path) -> None:
    """Their columns come in different Arrow types, so the SQL is planned again."""
    one = pa.table({"film": ["4"], "score": ["9"], "text": ["x"]})
    pq.write_table(one, folder / "more.parquet")
    once = answer(folder, "joined", ratings=["ratings.csv"])[0].tables[1].rows
    files = ["ratings.csv", "more.parquet", "films/../ratings.csv"]
    (folder / "films").mkdir()
    assert answer(folder, "joined", ratings=files)[0].tables[1].rows == 2 * once + 1


def test_strict_fails_on_the_first_reject_while_others_are_still_read(folder: Path) -> None:
    query = Query("q", "q", QUERIES["joined"], "q.sql")
    app = Application("app", "", folder, (FILMS, RATINGS), (query,))
    with pytest.raises(RejectedRowError, match=r"ratings\.csv line 13: no film"):
        engine.run(app, Sources(folder), options=RunOptions(batch_bytes=64, strict=True))


def test_texts_that_are_not_utf8_are_repaired_in_rows_that_are_dropped_too(folder: Path) -> None:
    lines = (folder / "ratings.csv").read_bytes().splitlines(keepends=True)
    lines[3] = b"96,2,caf\xe9\x81\n"  # nobody asks for this film
    (folder / "ratings.csv").write_bytes(b"".join(lines))
    assert answer(folder, "listed")[0].rejects.repaired == {"ratings": 1}


def test_rows_out_of_sight_never_reach_the_sql(folder: Path) -> None:
    seen: list[int] = []

    def spy(piece: FilePiece, cleaning: Cleaning, select: Select, filters: KeyFilters) -> Cleaned:
        def count(sql: str, relation: str, rows: pa.Table) -> pa.Table:
            seen.append(rows.num_rows if cleaning.table is RATINGS else 0)
            return select(sql, relation, rows)

        return clean_piece(piece, cleaning, count, filters)

    with patch.object(cleaners, "clean_piece", spy):
        answers, _ = answer(folder, "joined")
    assert answers.tables[1].rows > 3900
    assert sum(seen) < 1200  # films of one country in four, and what may be rejected
