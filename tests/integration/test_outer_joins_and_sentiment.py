"""`sentiment` of the nulls that an outer join gives is 0.0, however a query is answered: the value
of a computed column would be null there."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from tests.harness.oracle import ORACLE

from caudal.datasets.shelf import Shelf, open_shelf
from caudal.duck.functions import register_functions
from caudal.embedded.dataset_ask import ask
from caudal.embedded.dataset_load import open_loader
from caudal.embedded.dataset_sources import file_sources
from caudal.files.sources import Sources
from caudal.kernels.sentiment import load_model
from caudal.local.engines import run_with
from caudal.model import LEXICON, Application, Table
from caudal.run_options import IN_PROCESS, RunOptions
from caudal.sql.adhoc import with_adhoc_query
from caudal.store import DirectoryStore

TABLES = {
    "b": ("id", "SELECT CAST(id AS INTEGER) AS id, note FROM raw", ("id", "note")),
    "r": ("bid", "SELECT CAST(bid AS INTEGER) AS bid, text FROM raw", ("bid", "text")),
}
FILES = {
    "b.csv": "id,note\n1,good\n2,bad\n3,\n4,awful\n",
    "r.csv": "bid,text\n1,a wonderful book\n1,a terrible book\n2,fine\n5,great\n3,\n",
}
APP = Application(
    "outer",
    "",
    Path(),
    tuple(
        Table(name, (f"{name}.csv",), columns, sql, f"tables/{name}.sql")
        for name, (_, sql, columns) in TABLES.items()
    ),
    (),
)
QUERIES = [
    "SELECT b.id FROM b LEFT JOIN r ON b.id = r.bid WHERE sentiment(r.text) >= 0",
    "SELECT b.id, avg(sentiment(r.text)) AS s FROM b LEFT JOIN r ON b.id = r.bid GROUP BY b.id",
    "SELECT b.id, sentiment(text) AS s FROM b LEFT JOIN r ON b.id = r.bid",
    "SELECT b.id, sentiment(r.text) AS s FROM r RIGHT JOIN b ON b.id = r.bid",
    "SELECT b.id, sentiment(r.text) AS s FROM r FULL JOIN b ON b.id = r.bid",
    "SELECT r.bid, sentiment(b.note) AS s FROM r FULL JOIN b ON b.id = r.bid",
    "SELECT r.bid, sentiment(b.note) AS s FROM r LEFT JOIN b ON b.id = r.bid",
    "SELECT r.bid, sentiment(r.text) AS s FROM r LEFT JOIN b ON b.id = r.bid",
    "SELECT b.id, sentiment(b.note) AS s FROM r RIGHT JOIN b ON b.id = r.bid",
    "SELECT b.id, sentiment(r.text) AS s FROM b JOIN r ON b.id = r.bid",
    "SELECT b.id, r.bid, sentiment(r.text) AS s FROM b POSITIONAL JOIN r",
    "SELECT b.id, sentiment(r.text) AS s FROM b ASOF LEFT JOIN r ON b.id >= r.bid",
    "SELECT sentiment(r.text) AS s, c.id FROM r JOIN b ON b.id = r.bid "
    "RIGHT JOIN b AS c ON c.id = b.id",
    "SELECT sentiment(r.text) AS s, c.id FROM b LEFT JOIN r ON b.id = r.bid JOIN b AS c USING (id)",
    "SELECT sentiment(c.note) AS s FROM b LEFT JOIN r ON b.id = r.bid JOIN b AS c USING (id)",
    "SELECT b.id, x.s FROM b LEFT JOIN (SELECT bid, sentiment(text) AS s FROM r) AS x "
    "ON x.bid = b.id",
    "SELECT b.id, x.s FROM b LEFT JOIN (SELECT bid, sentiment(text) AS s FROM r) AS x "
    "ON x.bid = b.id WHERE coalesce(x.s, 1) >= 0",
    "WITH x AS (SELECT bid, sentiment(text) AS s FROM r) "
    "SELECT b.id, avg(x.s) AS s FROM b LEFT JOIN x ON x.bid = b.id GROUP BY b.id",
    "SELECT b.id, sentiment(x.text) AS s FROM b LEFT JOIN (SELECT * FROM r) AS x ON x.bid = b.id",
    "SELECT b.id, y.s FROM b LEFT JOIN (SELECT c.id, sentiment(r.text) AS s FROM b AS c "
    "LEFT JOIN r ON c.id = r.bid) AS y ON y.id = b.id",
    "SELECT b.id, x.s FROM b LEFT JOIN LATERAL (SELECT sentiment(r.text) AS s FROM r "
    "WHERE r.bid = b.id) AS x ON true",
    "SELECT b.id, (SELECT max(sentiment(r.text)) FROM r WHERE r.bid = b.id) AS s FROM b",
    "SELECT b.id FROM b LEFT JOIN r ON b.id = r.bid AND sentiment(r.text) > 0",
    "SELECT b.id FROM b WHERE EXISTS (SELECT 1 FROM b AS c LEFT JOIN r ON c.id = r.bid "
    "WHERE c.id = b.id AND sentiment(r.text) = 0)",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("outer")
    for name, text in FILES.items():
        (made / name).write_text(text)
    return made


@pytest.fixture(scope="module")
def shelf(folder: Path) -> Shelf:
    place = folder / "shelf"
    with open_loader(APP, str(place), DirectoryStore(place, fsync=False)) as loader:
        loader.load(file_sources(Sources(folder), APP.tables))
    return open_shelf(str(place))


@pytest.fixture(scope="module")
def oracle(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config=ORACLE) as connection:
        register_functions(connection, load_model(LEXICON))
        for name, (_, sql, _) in TABLES.items():
            connection.execute(
                f"CREATE TABLE {name} AS WITH raw AS (FROM read_csv('{folder / name}.csv', "
                f"all_varchar = true)) {sql}"
            )
        yield connection


@pytest.mark.parametrize("sql", QUERIES)
def test_a_null_of_an_outer_join_has_its_sentiment(
    sql: str, folder: Path, shelf: Shelf, oracle: duckdb.DuckDBPyConnection
) -> None:
    expected = sorted(oracle.sql(sql).fetchall(), key=repr)
    asked = with_adhoc_query(APP, sql)
    for engine in IN_PROCESS:
        found = run_with(engine, asked, Sources(folder), options=RunOptions(threads=1))
        assert rows_of(found["sql"].rows()) == expected, engine
    assert rows_of(ask(asked, shelf, options=RunOptions(threads=1))["sql"].rows()) == expected


def rows_of(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in rows), key=repr)
