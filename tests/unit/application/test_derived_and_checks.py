"""Derived tables and checks of an application, on every engine and on a cluster."""

import json
from pathlib import Path

import pytest
from tests.harness.memory_cluster import cluster

import caudal
from caudal.application import find_application, load_application
from caudal.application.cases import run_cases
from caudal.application.check import check_application
from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.errors import ApplicationError, UsageError
from caudal.run_options import IN_PROCESS

Capture = pytest.CaptureFixture[str]
APP = """\
[[tables]]
name = "totals"

[[tables]]
name = "orders"
files = ["orders.csv"]
columns = ["id", "customer", "amount"]

[[tables]]
name = "large"

[parameters]
least = 10
"""
FILES = {
    "app.toml": APP,
    "tables/orders.sql": "SELECT to_integer(id) AS id, customer, to_integer(amount) AS amount, "
    "CASE WHEN to_integer(id) IS NULL THEN 'id is not an integer' END AS reject FROM raw",
    "tables/large.sql": "SELECT * FROM orders WHERE amount >= $least",
    "tables/totals.sql": "SELECT customer, sum(amount) AS total FROM large GROUP BY customer",
    "queries/best.sql": "-- Best\nSELECT customer, total FROM totals ORDER BY total DESC, customer",
    "queries/share.sql": "WITH every AS (SELECT sum(amount) AS amount FROM orders) "
    "SELECT customer, total / amount AS share FROM totals, every ORDER BY customer",
    "checks/ids_are_unique.sql": "-- Ids are unique\nSELECT id, count(*) AS n FROM orders "
    "GROUP BY id HAVING count(*) > 1 ORDER BY id",
    "checks/customer_not_null.sql": "SELECT id FROM orders WHERE customer IS NULL ORDER BY id",
    "checks/total_in_range.sql": "SELECT * FROM totals WHERE total NOT BETWEEN 0 AND 1000",
}
DATA = "id,customer,amount\n1,ann,10\n2,bob,20\n3,ann,30\n4,bob,5\nx,eve,9\n"
BEST = [{"customer": "ann", "total": 40}, {"customer": "bob", "total": 20}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "sales" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "orders.csv").write_text(DATA)
    return tmp_path / "sales"


def change(folder: Path, file: str, text: str) -> None:
    (folder / file).write_text(text)


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_derived_tables_on_both_engines(folder: Path, engine: str) -> None:
    answers = caudal.run(folder, folder.parent, engine=engine)
    assert answers["best"].rows() == BEST
    assert [row["customer"] for row in answers["share"]] == ["ann", "bob"]
    assert answers.rejects.counts() == {"orders": {"id is not an integer": 1}}
    fewer = caudal.run(folder, folder.parent, "best", parameters={"least": 25}, engine=engine)
    assert fewer["best"].rows() == [{"customer": "ann", "total": 30}]
    select = "SELECT count(*) AS n FROM large WHERE customer = $who"
    some = caudal.sql(select, folder, folder.parent, parameters={"who": "ann"}, engine=engine)
    assert some["n"] == [2]


def test_a_frame_may_not_have_the_name_of_a_derived_table(folder: Path) -> None:
    frame = caudal.sql("SELECT 1 AS x")
    with pytest.raises(UsageError, match="the application has a table 'large'"):
        caudal.sql("SELECT * FROM large", folder, folder.parent, tables={"large": frame})


def test_derived_tables_on_a_cluster(folder: Path) -> None:
    with cluster() as started, caudal.Client(started.gateway) as client:
        assert client.run(folder, data=folder.parent)["best"].rows() == BEST
        counted = client.sql("SELECT count(*) AS n FROM large", folder, folder.parent)
        assert counted.rows() == [{"n": 3}]


def test_a_query_over_derived_tables_is_split(folder: Path, capsys: Capture) -> None:
    assert main(["explain", str(folder), "best", "--engine", "split", "--sql"]) == ExitStatus.OK
    plan = capsys.readouterr().out
    assert "partial group" in plan
    assert 'WHERE ("amount" >= 10)' in plan


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("tables/large.sql", "SELECT nope FROM orders", 'large.sql: Referenced column "nope"'),
        ("tables/large.sql", "SELECT * FROM totals", "circle: "),
        ("tables/large.sql", "SELECT * FROM raw", "large.sql: reads `raw`"),
        ("tables/orders.sql", "SELECT raw.id FROM raw, large", "orders.sql: "),
        ("checks/ids_are_unique.sql", "SELECT nope FROM orders", "ids_are_unique.sql: "),
        ("checks/best.sql", "SELECT 1", "best.sql has the name of a query"),
        ("checks/a b.sql", "SELECT 1", "'a b' cannot be a name"),
        ("app.toml", '[[tables]]\nname = "large"\n', "with files and columns"),
    ],
)
def test_mistakes_name_their_file(folder: Path, file: str, text: str, told: str) -> None:
    change(folder, file, text)
    if file == "app.toml":
        for name in ("orders", "totals"):
            (folder / "tables" / f"{name}.sql").unlink()
    with pytest.raises(ApplicationError) as caught:
        check_application(load_application(folder))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_check_says_what_it_checked(folder: Path, capsys: Capture) -> None:
    assert main(["check", str(folder)]) == ExitStatus.OK
    assert capsys.readouterr().out == "sales is valid: 3 tables, 2 queries, 3 checks\n"


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_checks_show_the_rows_that_must_not_exist(
    folder: Path, capsys: Capture, engine: str
) -> None:
    arguments = ["check", str(folder), "--data", str(folder.parent), "--engine", engine]
    assert main(arguments) == ExitStatus.OK
    assert "3 passed, 0 failed" in capsys.readouterr().out
    (folder.parent / "orders.csv").write_text(DATA + "3,,7\n")
    assert main(arguments) == ExitStatus.CASES_FAILED
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "FAILED  customer_not_null: customer_not_null",
        "        id",
        "        ──",
        "        3",
        "        1 row must not exist",
        "FAILED  ids_are_unique: Ids are unique",
        "        id  n",
        "        ──  ─",
        "        3   2",
        "        1 row must not exist",
        "passed  total_in_range: total_in_range",
        "1 passed, 2 failed",
    ]
    assert "1 row rejected" in told.err


def test_a_check_that_cannot_run_fails(folder: Path, capsys: Capture) -> None:
    change(folder, "checks/total_in_range.sql", "SELECT CAST(customer AS INTEGER) FROM orders")
    assert main(["check", str(folder), "--data", str(folder.parent)]) == ExitStatus.CASES_FAILED
    assert "FAILED  total_in_range" in capsys.readouterr().out


def test_a_folder_without_checks_says_how_to_write_one(folder: Path, capsys: Capture) -> None:
    for path in (folder / "checks").iterdir():
        path.unlink()
    assert main(["check", str(folder), "--data", str(folder.parent)]) == ExitStatus.APPLICATION
    assert "has no checks: write a SELECT of rows that must not exist" in capsys.readouterr().err


def test_a_case_may_name_checks(folder: Path) -> None:
    case = folder / "cases" / "twice"
    case.mkdir(parents=True)
    (case / "orders.csv").write_text("id,customer,amount\n1,ann,10\n1,bob,20\n")
    expected = {"answers": {"ids_are_unique": [{"id": 1, "n": 2}], "customer_not_null": []}}
    (case / "expected.json").write_text(json.dumps(expected))
    [outcome] = run_cases(load_application(folder))
    assert outcome.problems == ()


def test_a_copy_of_a_shipped_application_works(tmp_path: Path, capsys: Capture) -> None:
    copied = tmp_path / "deep" / "mine"
    assert main(["new", str(copied), "--from", "movies"]) == ExitStatus.OK
    assert f"now try: caudal check {copied}" in capsys.readouterr().out
    app, original = load_application(copied), find_application("movies")
    assert [query.sql for query in app.queries] == [query.sql for query in original.queries]
    assert len(app.checks) == len(original.checks) > 0
    (copied / "queries" / "q2.sql").write_text("SELECT 1 AS one")
    assert len(list((copied / "cases").iterdir())) > 10
    assert sorted(path.name for path in copied.parent.iterdir()) == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["new", "{}/taken", "--from", "movies"], "exists already"),
        (["new", "{}/x", "a.csv", "--from", "movies"], "leave the files out"),
        (["new", "{}/x"], "name data files, each becomes a table; or --from APP"),
        (["new", "{}/x", "--from", "nothing"], "no application 'nothing'"),
    ],
)
def test_what_cannot_be_copied(
    tmp_path: Path, capsys: Capture, arguments: list[str], told: str
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    assert main([word.format(tmp_path) for word in arguments]) == ExitStatus.USAGE
    assert told in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
