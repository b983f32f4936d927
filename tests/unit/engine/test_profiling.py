"""`--profile`: rows in and out, bytes and seconds, per table and operator or stage."""

from pathlib import Path

import pytest

from caudal.application import find_application
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.results.answers import Answers
from caudal.run_options import IN_PROCESS, Engine, RunOptions
from caudal.sql.adhoc import with_adhoc_query

SQL = "SELECT rating, count(*) AS n FROM ratings WHERE user_id < 5 GROUP BY rating ORDER BY rating"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = "".join(f"{n},1,{n % 2}\n" for n in range(10))
    (tmp_path / "ratings.csv").write_text(f"userId,movieId,rating\n{rows}x,1,1\n")
    return tmp_path


def profiled(engine: Engine, data: Path, sql: str) -> Answers:
    app = with_adhoc_query(find_application("movies"), sql)
    return run_with(engine, app, Sources(data), options=RunOptions(profile=True, threads=1))


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_what_a_table_took(data: Path, engine: Engine) -> None:
    (table,) = profiled(engine, data, SQL).tables
    assert (table.table, table.rows, table.rejected) == ("ratings", 10, 1)
    assert table.bytes > 50
    assert table.seconds > 0


def test_a_read_takes_what_the_table_holds(data: Path) -> None:
    operators = profiled(Engine.EMBEDDED, data, SQL).operators
    read, group = operators[0], next(step for step in operators if step.operator == "group")
    assert (read.operator, read.table) == ("read", "ratings")
    assert read.rows_in >= read.rows_out == 5
    assert (group.rows_in, group.rows_out) == (5, 2)


def test_a_union_gives_what_it_takes(data: Path) -> None:
    sql = "SELECT user_id FROM ratings UNION ALL SELECT movie_id FROM ratings"
    operators = profiled(Engine.EMBEDDED, data, sql).operators
    (union,) = (step for step in operators if step.operator == "union")
    assert (union.rows_in, union.rows_out) == (20, 20)


def test_stages_of_the_split_engine(data: Path) -> None:
    answers = profiled(Engine.SPLIT, data, SQL)
    assert answers["sql"].rows() == [{"rating": 0, "n": 3}, {"rating": 1, "n": 2}]
    scan, *folds, finish = answers.operators
    assert (scan.operator, scan.table, scan.rows_in, scan.rows_out) == ("scan1", "ratings", 10, 2)
    assert (finish.operator, finish.rows_in, finish.rows_out) == ("finish", 2, 2)
    for stage in (scan, *folds, finish):
        assert stage.query == "sql"
        assert stage.bytes_out > 0
        assert stage.seconds > 0


def test_nothing_is_measured_unasked(data: Path) -> None:
    app = with_adhoc_query(find_application("movies"), SQL)
    for engine in IN_PROCESS:
        assert run_with(engine, app, Sources(data)).operators == ()
