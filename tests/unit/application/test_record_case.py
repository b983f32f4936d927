"""Cases made out of live data."""

import json
from pathlib import Path
from typing import Any

import pytest

from caudal.application import load_application
from caudal.application.cases import run_cases
from caudal.cli.main import main
from caudal.cli.status import ExitStatus

Capture = pytest.CaptureFixture[str]
APP = """\
[[tables]]
name = "customers"
files = ["customers.csv"]
columns = ["id", "name"]
[[tables]]
name = "orders"
files = ["orders/*.csv"]
columns = ["customer", "amount"]
[parameters]
least = 0
"""
FILES = {
    "app.toml": APP,
    "tables/customers.sql": "SELECT to_integer(id) AS id, name FROM raw",
    "tables/orders.sql": "SELECT to_integer(customer) AS customer, to_integer(amount) AS amount, "
    "CASE WHEN to_integer(amount) IS NULL THEN 'amount is not an integer' END AS reject FROM raw",
    "queries/totals.sql": "SELECT name, sum(amount) AS total FROM customers "
    "JOIN orders ON customer = id WHERE amount >= $least GROUP BY name ORDER BY name",
    "queries/names.sql": "SELECT name FROM customers ORDER BY name",
    "queries/unordered.sql": "SELECT max(name) AS name, random() AS chance FROM customers",
}


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = tmp_path / "sales"
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    data = tmp_path / "data"
    (data / "orders").mkdir(parents=True)
    names = "".join(f'{n},"Customer, {n}",x\n' for n in range(100))
    (data / "customers.csv").write_text(f"id,name,other\n{names}")
    for part in range(2):
        rows = "".join(f"{99 - n},{n * 10 + part}\n" for n in range(100))
        (data / "orders" / f"{part}.csv").write_text(f"customer,amount\n{rows}1,many\n")
    return folder


def case(app: Path, *more: str) -> int:
    arguments = ["case", str(app), "made", "--from", str(app.parent / "data"), *more]
    return main(arguments)


def expected(app: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((app / "cases" / "made" / "expected.json").read_text())
    return found


def test_a_case_holds_related_rows_and_passes(app: Path, capsys: Capture) -> None:
    related = "orders=customer IN (SELECT id FROM customers) OR amount = 'many'"
    found = case(app, "--rows", "3", "--where", related, "-q", "totals", "--param", "least=5")
    assert found == ExitStatus.OK
    assert "expected.json holds what the queries answer now" in capsys.readouterr().out
    made = app / "cases" / "made"
    assert (made / "customers.csv").read_text().splitlines()[1] == '0,"Customer, 0"'
    assert (made / "orders" / "1.csv").read_text().splitlines() == [
        "customer,amount", "2,970", "1,980", "0,990",
    ]  # fmt: skip
    assert expected(app)["parameters"] == {"least": 5}
    assert expected(app)["answers"]["totals"][0] == {"name": "Customer, 0", "total": 990}
    [outcome] = run_cases(load_application(app))
    assert outcome.problems == ()


def test_rejected_rows_are_part_of_a_case(app: Path) -> None:
    assert case(app, "--where", "orders=amount = 'many'", "-q", "totals", "--about", "bad") == 0
    assert expected(app)["rejects"] == {"orders": {"amount is not an integer": 2}}
    assert expected(app)["about"] == "bad"
    [outcome] = run_cases(load_application(app))
    assert outcome.problems == ()


def test_only_tables_that_are_read_get_a_file(app: Path) -> None:
    (app.parent / "data" / "orders" / "0.csv").unlink()
    (app.parent / "data" / "orders" / "1.csv").unlink()
    assert case(app, "-q", "names") == ExitStatus.OK
    made = app / "cases" / "made"
    assert sorted(path.name for path in made.iterdir()) == ["customers.csv", "expected.json"]
    assert len(expected(app)["answers"]["names"]) == 20


def test_other_files_for_a_table(app: Path) -> None:
    (app.parent / "few.csv").write_text("id,name\n7,Ann\n")
    assert case(app, "-q", "names", "--file", f"customers={app.parent}/few.csv") == ExitStatus.OK
    assert expected(app)["answers"] == {"names": [{"name": "Ann"}]}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-q", "unordered"], "engine gives another answer"),
        (["-q", "names", "--where", "customers=nope > 1"], "--where customers: "),
        (["-q", "names", "--where", "orders=TRUE"], "they read: customers"),
        (["-q", "names", "--where", "customers"], "write it as TABLE=CONDITION"),
        (["-q", "nothing"], "sales has no query 'nothing'"),
        (["--param", "least=x"], "least must be a whole number"),
    ],
)
def test_refusals_leave_nothing(
    app: Path, capsys: Capture, arguments: list[str], told: str
) -> None:
    before = sorted(app.rglob("*"))
    assert case(app, *arguments) == ExitStatus.USAGE
    assert told in capsys.readouterr().err
    assert sorted(app.rglob("*")) == before


def test_names_and_folders_are_checked(app: Path, capsys: Capture) -> None:
    assert main(["case", "movies", "x", "--from", "."]) == ExitStatus.USAGE
    assert "copy movies first: caudal new mine --from movies" in capsys.readouterr().err
    data = str(app.parent / "data")
    assert main(["case", str(app), "../x", "--from", data]) == ExitStatus.USAGE
    assert main(["case", str(app), "x", "--from", f"{data}/nothing"]) == ExitStatus.USAGE
    assert case(app, "-q", "names") == ExitStatus.OK
    assert case(app, "-q", "names") == ExitStatus.USAGE
    assert "exists already" in capsys.readouterr().err
