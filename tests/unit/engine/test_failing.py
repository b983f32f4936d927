"""One query's failure fails that query only: all others are answered."""

from pathlib import Path

import pytest

from caudal.errors import ApplicationError, QueryError
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, Query, Table
from caudal.run_options import IN_PROCESS, Engine, RunOptions

SOUND = {
    "groups": "SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY k",
    "total": "SELECT sum(id) AS s FROM t",
    "joined": "SELECT count(*) AS n FROM t AS a JOIN u AS b ON a.k = b.k",
}
FAILING = {
    "scan": "SELECT id, CAST(text AS INTEGER) AS i FROM t ORDER BY 1",
    "fold": "SELECT k, CAST(max(text) AS INTEGER) AS i FROM t GROUP BY k ORDER BY 1",
    "finish": "SELECT CAST(max(text) AS INTEGER) AS i FROM t",
    "join": "SELECT count(*) AS n FROM t JOIN u ON t.k = u.k AND CAST(t.text AS INTEGER) > u.id",
    "gathered": "SELECT list(CAST(text AS INTEGER)) AS l FROM t",
    "memory": "SELECT string_agg(repeat(text, 20000000), '') AS s FROM t",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("data")
    lines = "".join(f"{row},{row % 3},word{row}\n" for row in range(300))
    for table in ("t", "u"):
        (made / f"{table}.csv").write_text("id,k,text\n" + lines, encoding="utf-8")
    return made


def application(queries: dict[str, str]) -> Application:
    sql = "SELECT id::INTEGER AS id, k::INTEGER AS k, text FROM raw"
    columns = ("id", "k", "text")
    tables = tuple(Table(n, (f"{n}.csv",), columns, sql, f"{n}.sql") for n in ("t", "u"))
    made = tuple(Query(name, name, text, f"{name}.sql") for name, text in queries.items())
    return Application("failing", "", Path(), tables, made)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("engine", IN_PROCESS)
@pytest.mark.parametrize("failing", FAILING)
def test_the_others_are_answered(failing: str, engine: Engine, folder: Path) -> None:
    options = RunOptions(threads=2, partitions=3, batch_bytes=1000, memory_limit=900_000_000)
    expected = run_with(engine, application(SOUND), Sources(folder), options=options)
    queries = {failing: FAILING[failing], **SOUND}
    answers = run_with(engine, application(queries), Sources(folder), options=options)
    assert set(answers.results) == set(SOUND)
    for name in SOUND:
        assert answers[name].table.equals(expected[name].table)
    assert list(answers.failures) == [failing]
    with pytest.raises(QueryError, match=f"{failing}.sql"):
        answers[failing].rows()
    assert f"{failing} failed: " in repr(answers)


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_several_may_fail(engine: Engine, folder: Path) -> None:
    failing = {name: FAILING[name] for name in ("scan", "fold", "finish", "join")}
    app = application({**failing, **SOUND})
    answers = run_with(engine, app, Sources(folder), options=RunOptions(partitions=2))
    assert set(answers.failures) == set(failing)
    assert set(answers.results) == set(SOUND)


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_nothing_but_failures_is_an_error(engine: Engine, folder: Path) -> None:
    with pytest.raises(QueryError, match=r"scan.sql"):
        run_with(engine, application({"scan": FAILING["scan"]}), Sources(folder))


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_a_broken_table_is_everybodys(engine: Engine, folder: Path, tmp_path: Path) -> None:
    for name in ("t", "u"):
        (tmp_path / f"{name}.csv").write_text("id,k,text\nx,1,a\n")
    with pytest.raises(ApplicationError, match=r"t.sql"):
        run_with(engine, application(SOUND), Sources(tmp_path))
