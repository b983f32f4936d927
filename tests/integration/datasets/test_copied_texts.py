"""Texts that a table's SQL leaves unchanged do not pass through DuckDB: the rows are the same."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caudal.datasets.shelf import open_shelf
from caudal.duck.dataset_tables import bind_app_tables
from caudal.duck.describe import empty_schema
from caudal.embedded.dataset_load import open_loader
from caudal.embedded.dataset_rows import arrow_rows
from caudal.embedded.dataset_sources import file_source
from caudal.embedded.dataset_tables import app_database
from caudal.model import Application, Table
from caudal.run_options import RunOptions
from caudal.store import DirectoryStore

SQL = """
SELECT "Name", note, other, upper(name2) AS shouted, n, n AS again, COALESCE(note, '-') AS filled,
    CASE WHEN n IS NULL THEN 'n is no number' END AS reject
FROM (
    SELECT
        raw."Name", raw.note, raw.note AS other, raw.note AS name2, TRY_CAST(raw.n AS BIGINT) AS n
    FROM raw
)
"""
COLUMNS = ("Name", "note", "n")
OUTPUTS = ["Name", "note", "other", "shouted", "n", "again", "filled"]


def app(sql: str = SQL) -> Application:
    return Application("notes", "", Path(), (Table("t", ("t.csv",), COLUMNS, sql, "t.sql"),), ())


def copied(sql: str) -> list[tuple[int, str, str]]:
    one = app(sql)
    with app_database(one, RunOptions()) as connection, empty_schema(connection) as cursor:
        bound = bind_app_tables(cursor, one.tables, "lexicon", copying=True)
    return [(found.place, found.output, found.column) for found in bound.cleanings["t"].copied]


def loaded(path: Path, place: Path) -> pa.Table:
    with open_loader(app(), str(place), DirectoryStore(place, fsync=False)) as loader:
        loader.load([file_source("t", path)])
    return arrow_rows(open_shelf(str(place)), "t")


def test_only_unchanged_texts_are_copied() -> None:
    assert copied(SQL) == [(0, "Name", "Name"), (1, "note", "note"), (2, "other", "note")]
    assert copied("SELECT trim(note) AS note, CAST(n AS VARCHAR) AS n FROM raw") == []
    assert copied("SELECT CASE WHEN n = '1' THEN note END AS note FROM raw") == []
    assert copied("SELECT note AS n, n AS note FROM raw") == [(0, "n", "note"), (1, "note", "n")]


RECORDS = [
    ("Ana", "short", "1"), ("Ben", "a text that is longer than a view holds", "2"),
    ("", "the name is null", "3"), ("bad", "rejected " * 9, "x"), ("Ünïcödé 🙂", "", "4"),
    ('"quoted "" and, comma"', '"two\nlines"', "5"), ("last", "rejected", ""),
]  # fmt: skip
EXPECTED = {
    "Name": ["Ana", "Ben", None, "Ünïcödé 🙂", 'quoted " and, comma'],
    "note": ["short", "a text that is longer than a view holds", "the name is null", None,
             "two\nlines"],
}  # fmt: skip


@pytest.mark.parametrize("bad_bytes", [False, True])
def test_rows_of_a_csv_file(tmp_path: Path, *, bad_bytes: bool) -> None:
    lines = ["Name,note,n", *(",".join(one) for one in RECORDS)]
    data = "\n".join(lines).encode() + (b"\nbroken \xff byte,x,6" if bad_bytes else b"")
    (tmp_path / "t.csv").write_bytes(data)
    rows = loaded(tmp_path / "t.csv", tmp_path / "shelf").to_pydict()
    assert list(rows) == OUTPUTS
    assert rows["n"] == rows["again"] == [1, 2, 3, 4, 5] + [6] * bad_bytes
    assert rows["Name"][:5] == EXPECTED["Name"]
    assert rows["note"][:5] == rows["other"][:5] == EXPECTED["note"]
    assert rows["filled"][:5] == [one or "-" for one in EXPECTED["note"]]
    assert rows["shouted"][:5] == [one and one.upper() for one in EXPECTED["note"]]
    assert rows["Name"][5:] == ["broken \ufffd byte"] * bad_bytes


def test_rows_of_a_parquet_file(tmp_path: Path) -> None:
    given = pa.table({"Name": ["a", None, "b" * 50], "note": ["x", "y", "z"], "n": [1, None, 3]})
    pq.write_table(given, tmp_path / "t.parquet")
    rows = loaded(tmp_path / "t.parquet", tmp_path / "shelf").to_pydict()
    assert list(rows) == OUTPUTS
    assert (rows["Name"], rows["note"], rows["n"]) == (["a", "b" * 50], ["x", "z"], [1, 3])
