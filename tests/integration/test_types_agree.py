"""Every type that DuckDB has gives DuckDB's own rows on every engine, nested too."""

import csv
import functools
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from tests.harness.duckdb_types import TYPES, texts_of

from caudal.duck.arrow_casts import presented
from caudal.errors import ApplicationError
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.local.run import local_run
from caudal.model import Application, Query, Table
from caudal.results.answers import Result
from caudal.results.text_formats import json_of
from caudal.run_options import IN_PROCESS, Engine, RunOptions
from caudal.store import DirectoryStore

STATEMENTS = {
    "rows": "SELECT k, v FROM t ORDER BY k",
    "groups": "SELECT CAST(v AS VARCHAR) AS x, typeof(v) AS y, count(*) AS n FROM t GROUP BY v"
    " ORDER BY 1 NULLS FIRST, 3",
    "ends": "SELECT min(v) AS a, max(v) AS b, CAST(max(v) AS VARCHAR) AS c, typeof(max(v)) AS d"
    " FROM t",
    "by_group": "SELECT k % 2 AS g, max(v) AS b, count(DISTINCT v) AS c FROM t GROUP BY 1"
    " ORDER BY 1",
    "distinct": "SELECT CAST(v AS VARCHAR) AS v FROM (SELECT DISTINCT v FROM t)"
    " ORDER BY 1 NULLS FIRST",
    "first": "SELECT v FROM (SELECT v, k FROM t ORDER BY v DESC NULLS LAST, k LIMIT 2)",
    "joined": "SELECT count(*) AS n FROM t AS a JOIN t AS b ON a.v = b.v",
    # Not ordered: DuckDB 2.0 crashes when it sorts rows with an array inside a struct.
    "nested": "SELECT k, [v, NULL] AS l, {'x': v, 'y y': [v]} AS s, row(v, 1) AS r FROM t",
    "listed": "SELECT k % 2 AS g, list(v ORDER BY k) AS l, CAST(list(v ORDER BY k) AS VARCHAR) AS t"
    " FROM t GROUP BY 1 ORDER BY 1",
    "mapped": "SELECT g, CAST(m AS VARCHAR) AS m, typeof(m) AS t FROM"
    " (SELECT k % 2 AS g, histogram(v) AS m FROM t GROUP BY 1) ORDER BY 1",
    "windows": "SELECT k, CAST(lag(v) OVER (ORDER BY k) AS VARCHAR) AS v FROM t ORDER BY k",
}  # fmt: skip


@functools.cache
def application(kind: str) -> tuple[Application, dict[str, pa.Table]]:
    """One table with a column of the type, every statement that DuckDB takes, and its rows."""
    sql = f"SELECT CAST(k AS INTEGER) AS k, CAST(v AS {kind}) AS v FROM raw"
    table = Table("t", ("t.csv",), ("k", "v"), sql, "t.sql")
    queries, expected = [], {}
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE TABLE raw (k VARCHAR, v VARCHAR)")
        connection.executemany("INSERT INTO raw VALUES (?, ?)", rows_of(kind))
        connection.execute(f"CREATE TABLE t AS {sql}")
        for name, text in STATEMENTS.items():
            try:
                expected[name] = presented(connection.sql(text))
            except duckdb.Error:
                continue  # DuckDB has no order, or no histogram, for this type
            queries.append(Query(name, name, text, f"{name}.sql"))
    return Application("types", "Types", Path(), (table,), tuple(queries), {}), expected


def rows_of(kind: str) -> list[tuple[str, str | None]]:
    """Every value three times, so that groups, joins and batches have something to do."""
    texts = texts_of(kind)
    return [(str(k), texts[k % len(texts)]) for k in range(3 * len(texts))]


def write_rows(kind: str, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["k", "v"])
        writer.writerows(rows_of(kind))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("engine", IN_PROCESS)
@pytest.mark.parametrize("kind", TYPES)
def test_a_type_gives_the_rows_of_duckdb(kind: str, engine: Engine, tmp_path: Path) -> None:
    write_rows(kind, tmp_path / "t.csv")
    app, expected = application(kind)
    options = RunOptions(threads=1, partitions=2, batch_bytes=64)
    answers = run_with(engine, app, Sources(tmp_path), options=options)
    for name, rows in expected.items():
        assert answers[name].table.schema.equals(rows.schema), name
        assert told(answers[name]) == told(Result(name, name, rows)), name


STORED = [kind for kind in TYPES if kind.startswith(("ENUM('high'", "BIT", "TIME WITH", "UHUGE"))]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", [*STORED, "INTERVAL", "TUPLE(INTEGER, VARCHAR)"])
def test_the_steps_of_a_cluster_give_the_rows_of_duckdb(kind: str, tmp_path: Path) -> None:
    write_rows(kind, tmp_path / "t.csv")
    app, expected = application(kind)
    options = RunOptions(threads=1, partitions=2, batch_bytes=64)
    with local_run(DirectoryStore(tmp_path / "store"), "store", resume=False) as stored:
        answers = stored.run(app, Sources(tmp_path), options=options)
    for name, rows in expected.items():
        assert told(answers[name]) == told(Result(name, name, rows)), name


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_a_type_that_cannot_be_carried_is_refused_with_a_remedy(
    engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("k,v\n1,2\n")
    sql = "SELECT k, map([1], [union_value(a := v)]) AS v FROM raw"
    table = Table("t", ("t.csv",), ("k", "v"), sql, "t.sql")
    query = Query("rows", "", STATEMENTS["rows"], "rows.sql")
    app = Application("refused", "", Path(), (table,), (query,))
    with pytest.raises(ApplicationError, match=r"t.sql: column 'v' .* CAST\(\"v\" AS VARCHAR\)"):
        run_with(engine, app, Sources(tmp_path))


def told(result: Result) -> bytes:
    """The rows as bytes: text of every value, for NaN is not equal to itself."""
    return b"".join(json_of([result.table]))
