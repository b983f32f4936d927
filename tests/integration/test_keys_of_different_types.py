"""Joins of keys of different types give DuckDB's rows or DuckDB's error, on every engine."""

import itertools
from pathlib import Path

import duckdb
import pytest

from caudal.errors import QueryError
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, Query, Table
from caudal.run_options import IN_PROCESS, Engine, RunOptions

TYPES = ["BIGINT", "VARCHAR", "DOUBLE", "DECIMAL(10,2)", "DATE", "ENUM('1', '2', '02')"]
STATEMENTS = {
    "inner": "SELECT a.x, b.y FROM a JOIN b ON a.k = b.k ORDER BY ALL",
    "left": "SELECT a.x, b.y FROM a LEFT JOIN b ON a.k = b.k AND b.y <> 'q' ORDER BY ALL",
    "full": "SELECT a.x, b.y FROM a FULL JOIN b ON a.k = b.k ORDER BY ALL",
    "semi": "SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) ORDER BY 1",
}
FILES = {"a": "k,x\n1,a\n2,b\n,c\n3,d\n", "b": "k,y\n1,p\n02,q\n1,r\n2.0,s\n"}


def application(left: str, right: str) -> Application:
    tables = tuple(
        Table(name, (f"{name}.csv",), ("k", v), f"SELECT TRY_CAST(k AS {kind}) AS k, {v} FROM raw",
              f"{name}.sql")
        for name, v, kind in (("a", "x", left), ("b", "y", right))
    )  # fmt: skip
    queries = tuple(Query(name, "", text, "q.sql") for name, text in STATEMENTS.items())
    return Application("keys", "", Path(), tables, queries)


def rows_of_duckdb(app: Application) -> dict[str, list[tuple[object, ...]] | None]:
    """By statement; None: DuckDB raises."""
    found: dict[str, list[tuple[object, ...]] | None] = {}
    with duckdb.connect(config={"threads": 1}) as connection:
        for table in app.tables:
            columns = ", ".join(f"{name} VARCHAR" for name in table.columns)
            connection.execute(f"CREATE OR REPLACE TABLE raw ({columns})")
            lines = [line.split(",") for line in FILES[table.name].splitlines()[1:]]
            connection.executemany("INSERT INTO raw VALUES (nullif(?, ''), ?)", lines)
            connection.execute(f"CREATE TABLE {table.name} AS {table.sql}")
        for name, statement in STATEMENTS.items():
            try:
                found[name] = connection.execute(statement).fetchall()
            except duckdb.Error:
                found[name] = None
    return found


@pytest.mark.one_in(5)
@pytest.mark.parametrize("engine", IN_PROCESS)
@pytest.mark.parametrize(("left", "right"), list(itertools.permutations(TYPES, 2)))
def test_every_engine_gives_the_rows_or_the_error(
    left: str, right: str, engine: Engine, tmp_path: Path
) -> None:
    for name, text in FILES.items():
        (tmp_path / f"{name}.csv").write_text(text)
    app = application(left, right)
    expected = rows_of_duckdb(app)
    options = RunOptions(threads=1, partitions=3, batch_bytes=1 << 16)
    try:
        answers = run_with(engine, app, Sources(tmp_path), options=options)
    except QueryError:
        assert all(rows is None for rows in expected.values())
        return
    for statement, rows in expected.items():
        if rows is not None:
            assert [tuple(row.values()) for row in answers[statement].rows()] == rows, statement
