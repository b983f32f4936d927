"""NaN is the greatest float of DuckDB, and a dataset loses none: neither of files that are written
now, nor of those that older releases wrote with bounds of floats inside."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.harness.oracle import ORACLE

from caudal.datasets import parquet
from caudal.datasets.shelf import Shelf, open_shelf
from caudal.embedded.dataset_ask import ask
from caudal.embedded.dataset_load import open_loader
from caudal.embedded.dataset_rows import lazy_frame, relation
from caudal.embedded.dataset_session import open_dataset_session
from caudal.embedded.dataset_sources import file_sources
from caudal.files.sources import Sources
from caudal.model import Application, Table
from caudal.run_options import RunOptions, Silent
from caudal.sql.adhoc import with_adhoc_query
from caudal.store import DirectoryStore

CLEANED = """SELECT CAST(id AS INTEGER) AS id, CAST(x AS DOUBLE) AS x, CAST(x AS FLOAT) AS f,
{'y': CAST(x AS DOUBLE), 'z': [{'w': CAST(x AS FLOAT)}]} AS s, [CAST(x AS DOUBLE)] AS l, CAST(k AS
DOUBLE) AS k FROM raw"""
ROWS = "id,x,k\n1,1.0,1\n2,nan,2\n3,2.0,3\n4,,4\n5,-0.0,5\n6,0.5,6\n"
FINITE = "id,x,k\n7,1.5,7\n8,2.5,8\n"
APP = Application(
    "floats", "", Path(), (Table("t", ("t.csv",), ("id", "x", "k"), CLEANED, "tables/t.sql"),), ()
)
QUESTIONS = [
    "SELECT id FROM t WHERE x > 5",
    "SELECT id FROM t WHERE f > 5",
    "SELECT id FROM t WHERE x >= 2",
    "SELECT id FROM t WHERE x = 'nan'::DOUBLE",
    "SELECT id FROM t WHERE x IS NOT DISTINCT FROM 'nan'::DOUBLE",
    "SELECT id FROM t WHERE x IN ('nan'::DOUBLE, 'inf'::DOUBLE)",
    "SELECT id FROM t WHERE NOT (x <= 2.5)",
    "SELECT id FROM t WHERE x <> 1 AND x <> 2",
    "SELECT id FROM t WHERE x < 'nan'::DOUBLE",
    "SELECT id FROM t WHERE x BETWEEN 5 AND 'nan'::DOUBLE",
    "SELECT id FROM t WHERE abs(x) > 5",
    "SELECT id FROM t WHERE CAST(x AS FLOAT) > 5",
    "SELECT count(*) FROM t WHERE isnan(x)",
    "SELECT count(*), max(x), max(f), min(-x) FROM t",
    "SELECT max(s.y), max(l[1]) FROM t",
    "SELECT id, x FROM t ORDER BY x DESC NULLS LAST LIMIT 1",
    "SELECT id, x FROM t ORDER BY x DESC NULLS LAST, id LIMIT 3",
    "SELECT id FROM t WHERE s.y > 5",
    "SELECT id FROM t WHERE s.z[1].w > 5",
    "SELECT id FROM t WHERE l[1] > 5",
    "SELECT id FROM t WHERE x >= (SELECT max(x) FROM t)",
    "SELECT t.id FROM t JOIN (SELECT 'nan'::DOUBLE AS v) ON t.x = v",
    "SELECT t.id FROM t SEMI JOIN (SELECT x FROM t WHERE id = 2) AS o ON t.x = o.x",
    "SELECT id FROM t WHERE k > 5 OR x > 5 ORDER BY id",
    "SELECT id FROM t WHERE x IS NULL",
    "SELECT DISTINCT x FROM t WHERE x > 5",
]


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("floats")
    (folder / "a.csv").write_text(FINITE)
    (folder / "b.csv").write_text(ROWS)
    return folder


def loaded(csv: Path, place: Path) -> Shelf:
    store = DirectoryStore(place, fsync=False)
    with open_loader(APP, str(place), store, RunOptions(threads=1)) as loader:
        for name in ("a.csv", "b.csv"):
            loader.load(file_sources(Sources(csv, {"t": [name]}), APP.tables))
    return open_shelf(str(place))


def write_as_before(rows: pa.Table, where: object, **options: object) -> None:
    """Write a file as release 1.0 did: with bounds of floats, in several groups of rows."""
    options |= {"write_statistics": True, "row_group_size": 2}
    _WRITE(rows, where, **options)


_WRITE = pq.write_table


@pytest.fixture(scope="module", params=["new", "old"])
def shelf(
    request: pytest.FixtureRequest, csv: Path, tmp_path_factory: pytest.TempPathFactory
) -> Shelf:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "old":
            patch.setattr(pq, "write_table", write_as_before)
        found = loaded(csv, tmp_path_factory.mktemp(request.param) / "shelf")
    (path, *_) = sorted(Path(found.place).rglob("*.parquet"))
    assert parquet.has_untrue_bounds(path) == (request.param == "old")
    return found


@pytest.fixture(scope="module")
def oracle(csv: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config=ORACLE) as connection:
        connection.execute(
            f"CREATE TABLE t AS WITH raw AS (FROM read_csv(['{csv / 'a.csv'}', '{csv / 'b.csv'}'], "
            f"all_varchar = true)) {CLEANED}"
        )
        yield connection


def plain(rows: object) -> str:
    return repr(rows)  # NaN does not equal itself


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_question_finds_every_nan(
    sql: str, shelf: Shelf, csv: Path, oracle: duckdb.DuckDBPyConnection
) -> None:
    asked = with_adhoc_query(APP, sql)
    found = ask(asked, shelf, options=RunOptions(threads=1))["sql"].table
    expected = oracle.sql(sql).to_arrow_table()
    assert plain(found.to_pylist()) == plain(expected.to_pylist())
    with (
        open_dataset_session(asked, shelf, RunOptions(threads=1)) as session,
        session.stream(asked, Sources(csv), Silent()) as streamed,
    ):
        rows = pa.concat_tables(streamed.parts).to_pylist()
    assert plain(rows) == plain(expected.to_pylist())


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_relation_in_the_callers_database_finds_every_nan(
    sql: str, shelf: Shelf, oracle: duckdb.DuckDBPyConnection
) -> None:
    with duckdb.connect() as connection:
        rows = relation(shelf, "t", connection)
        assert [str(kind) for kind in rows.types] == [
            str(kind) for kind in oracle.sql("FROM t").types
        ]
        rows.create_view("t")
        assert plain(connection.sql(sql).fetchall()) == plain(oracle.sql(sql).fetchall())


def test_a_lazy_frame_finds_every_nan(shelf: Shelf) -> None:
    polars = pytest.importorskip("polars")
    frame = lazy_frame(shelf, "t")
    for condition in (polars.col("x") > 5, polars.col("x").is_nan(), ~(polars.col("x") <= 2.5)):
        assert frame.filter(condition).collect()["id"].to_list() == [2]


def test_only_files_that_may_have_nan_are_looked_into() -> None:
    columns = {"id": "INTEGER", "x": "DOUBLE"}
    finite = parquet.file_stats(pa.table({"id": [1, 2], "x": [1.0, None]}))
    nothing = parquet.file_stats(pa.table({"id": [1], "x": pa.array([None], pa.float64())}))
    infinite = parquet.file_stats(pa.table({"id": [1], "x": [float("inf")]}))
    one = parquet.file_stats(pa.table({"id": [1, 2], "x": [1.0, float("nan")]}))
    told = [parquet.may_have_nan(stats, columns) for stats in (finite, nothing, infinite, one, "")]
    assert told == [False, False, True, True, True]
    assert not parquet.may_have_nan("", {"id": "INTEGER"})
    assert parquet.may_have_nan(finite, {**columns, "s": "STRUCT(y FLOAT[])"})
    assert parquet.may_have_nan("{", columns)
    assert parquet.may_have_nan("[]", columns)


def test_conditions_of_finite_files_still_reach_them(csv: Path, tmp_path: Path) -> None:
    """Bounds of other columns still let DuckDB skip rows, where no file has NaN."""
    sql = CLEANED.partition(", CAST(x AS FLOAT)")[0] + " FROM raw"
    app = replace(APP, tables=(replace(APP.tables[0], sql=sql),))
    with open_loader(app, str(tmp_path / "s"), DirectoryStore(tmp_path / "s", fsync=False)) as one:
        one.load(file_sources(Sources(csv, {"t": ["a.csv"]}), app.tables))
    with open_dataset_session(app, open_shelf(str(tmp_path / "s")), RunOptions()) as session:
        ((_, plan),) = session.connection.execute("EXPLAIN FROM t WHERE id > 7").fetchall()
        assert "Limit" not in plan
