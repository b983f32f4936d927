"""Where paths count from, what counts as a value, and the status of each kind of mistake."""

import json
from pathlib import Path

import pytest

from caudal.cli.main import main
from caudal.cli.status import ExitStatus

Capture = pytest.CaptureFixture[str]

APP = """\
[[tables]]
name = "orders"
files = ["orders.csv"]
columns = ["id", "amount"]
"""
COUNT = ["sql", "movies", "SELECT sum(rating) AS s FROM ratings", "--format", "json"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    return tmp_path


def ratings(path: Path, rating: int) -> None:
    path.write_text(f"userId,movieId,rating\n1,1,{rating}\n")


def application(folder: Path, query: str) -> None:
    for name in ("tables", "queries"):
        (folder / name).mkdir(parents=True)
    (folder / "app.toml").write_text(APP)
    (folder / "tables" / "orders.sql").write_text("SELECT to_integer(id) AS id FROM raw")
    (folder / "queries" / "q.sql").write_text(query)


def test_where_the_path_of_a_file_counts_from(here: Path, capsys: Capture) -> None:
    def total(path: str) -> object:
        assert main([*COUNT, "-d", "data", "--file", f"ratings={path}"]) == ExitStatus.OK
        return json.loads(capsys.readouterr().out)[0]["s"]

    ratings(here / "data" / "small.csv", 2)
    assert total("small.csv") == 2  # nothing here, so from the data folder
    assert total("data/small.csv") == 2
    ratings(here / "other.csv", 3)
    assert total("other.csv") == 3
    ratings(here / "small.csv", 4)
    assert main([*COUNT, "-d", "data", "--file", "ratings=small.csv"]) == ExitStatus.USAGE
    said = capsys.readouterr().err
    assert "both ./small.csv and data/small.csv match: write one of these" in said
    assert total("./small.csv") == 4
    assert total("data/small.csv") == 2
    assert total(str(here / "small.csv")) == 4
    assert main([*COUNT, "-d", ".", "--file", "ratings=small.csv"]) == ExitStatus.OK


def test_a_parameter_without_a_default(here: Path, capsys: Capture) -> None:
    application(here / "app", "SELECT id FROM orders WHERE id > $least")
    assert main(["check", "app"]) == ExitStatus.APPLICATION
    assert "q.sql: no value for $least: give --param least=VALUE" in capsys.readouterr().err
    assert main(["check", "app", "--param", "least=3"]) == ExitStatus.OK
    assert capsys.readouterr().out == "app is valid: 1 table, 1 query\n"


@pytest.mark.parametrize("value", ["1_000", "1e3", "", "٣", "0x10", "1.0", "many"])
def test_what_is_no_whole_number(value: str, capsys: Capture) -> None:
    arguments = ["run", "books", "-d", ".", "--param", f"min_reviews={value}"]
    assert main(arguments) == ExitStatus.USAGE
    assert "min_reviews must be a whole number" in capsys.readouterr().err


def test_other_separators_than_commas(here: Path, capsys: Capture) -> None:
    file = here / "data" / "ratings.csv"
    for engine in ("embedded", "split"):
        file.write_text("userId;movieId;rating\n1;1;4\n")
        assert main([*COUNT, "-d", "data", "--engine", engine]) == ExitStatus.OK
        file.write_text("userId;movieId;rating\n1;1;4;5\n1\n")  # not certain
        assert main([*COUNT, "-d", "data", "--engine", engine]) == ExitStatus.DATA
        assert "say it with --delimiter" in capsys.readouterr().err


def test_the_hint_of_new_can_be_pasted(here: Path, capsys: Capture) -> None:
    folder = here / "my data"
    folder.mkdir()
    (folder / "t.csv").write_text("a\n1\n")
    assert main(["new", "my app", str(folder / "t.csv")]) == ExitStatus.OK
    assert f"now try: caudal run './my app' --data '{folder}'" in capsys.readouterr().out
    assert main(["new", str(here / "second"), str(folder / "t.csv")]) == ExitStatus.OK
    assert f"caudal run {here / 'second'} " in capsys.readouterr().out


def test_explain_says_everything_once(capsys: Capture) -> None:
    assert main(["explain", "movies", "q5"]) == ExitStatus.OK
    assert capsys.readouterr().out.count("of overview where") == 1
    select = "SELECT median(rating) FROM ratings"
    assert main(["explain", "movies", select, "--engine", "split"]) == ExitStatus.OK
    assert "because of" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["sql", "movies", "FROM ratings", "-d", "data"],
        ["sql", "FROM 'ratings.csv'", "-d", "data"],
        ["new", "app", "data/ratings.csv"],
    ],
)
def test_an_empty_file_has_one_status(here: Path, arguments: list[str], capsys: Capture) -> None:
    (here / "data" / "ratings.csv").touch()
    assert main(arguments) == ExitStatus.DATA
    assert "ratings.csv is empty: a CSV file begins with a line" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["sql", "SELECT nope"],
        ["sql", "movies", "SELECT nope FROM ratings"],
        ["sql", "movies", "SELECT nope FROM ratings", "--engine", "split"],
        ["explain", "movies", "SELECT nope FROM ratings"],
        ["explain", "movies", "SELECT nope FROM ratings", "--engine", "split"],
    ],
)
def test_bad_sql_has_one_status(arguments: list[str], capsys: Capture) -> None:
    assert main(arguments) == ExitStatus.USAGE
    assert 'caudal: the query: Referenced column "nope"' in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "run", "explain"])
@pytest.mark.parametrize("engine", ["embedded", "split"])
def test_bad_sql_of_an_application_has_one_status(
    here: Path, command: str, engine: str, capsys: Capture
) -> None:
    application(here / "app", "SELECT nope FROM orders")
    (here / "orders.csv").write_text("id,amount\n1,2\n")
    more = {"check": [], "run": ["--engine", engine], "explain": ["q", "--engine", engine]}
    assert main([command, "app", *more[command]]) == ExitStatus.APPLICATION
    assert 'app/queries/q.sql: Referenced column "nope"' in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["embedded", "split"])
def test_a_query_that_fails_is_named(here: Path, engine: str, capsys: Capture) -> None:
    application(here / "app", "SELECT CAST('x' || id AS INTEGER) AS n FROM orders")
    (here / "orders.csv").write_text("id,amount\n1,2\n")
    assert main(["run", "app", "--engine", engine]) == ExitStatus.QUERY
    assert "app/queries/q.sql: Could not convert string 'x1'" in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["embedded", "split"])
def test_the_answers_beside_a_failure_are_given(here: Path, engine: str, capsys: Capture) -> None:
    application(here / "app", "SELECT CAST('x' || id AS INTEGER) AS n FROM orders")
    (here / "app" / "queries" / "sound.sql").write_text("-- sound\nSELECT sum(id) AS s FROM orders")
    (here / "orders.csv").write_text("id,amount\n1,2\n,,,\n")
    asked = ["run", "app", "--engine", engine, "--format", "json", "--rejects", "rejected.csv"]
    assert main(asked) == ExitStatus.QUERY
    found = capsys.readouterr()
    assert json.loads(found.out) == {"sound": [{"s": 1}]}
    assert "app/queries/q.sql: Could not convert string 'x1'" in found.err
    assert len((here / "rejected.csv").read_text().splitlines()) == 2
    assert main([*asked, "--out", "answers"]) == ExitStatus.QUERY
    assert [path.name for path in (here / "answers").iterdir()] == ["sound.json"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["jobs", "--gateway", ""],
        ["sql", "SELECT 1", "-g", ""],
        ["sql", "SELECT 1", "--memory-limit="],
        ["run", "books", "--data", ""],
        ["run", "books", "--out="],
    ],
)
def test_an_empty_value_is_not_taken_for_none(
    arguments: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAUDAL_GATEWAY", "http://127.0.0.1:1")
    assert main(arguments) == ExitStatus.USAGE
    assert "'' is empty: give a value, or leave it out" in capsys.readouterr().err


def test_help_tells_where_sql_answers(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUDAL_GATEWAY", "http://127.0.0.1:1")
    assert main(["sql", "SELECT 1"]) == ExitStatus.OK  # not on that cluster
    capsys.readouterr()
    assert main(["sql", "--help"]) == ExitStatus.OK
    assert "CAUDAL_GATEWAY" not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["results", "cancel"])
def test_what_is_no_id_of_a_job_is_not_asked_for(command: str, capsys: Capture) -> None:
    assert main([command, "../../etc", "--gateway", "127.0.0.1:1"]) == ExitStatus.USAGE
    assert "'../../etc' is not a valid job id" in capsys.readouterr().err


def test_usage_of_sql(capsys: Capture) -> None:
    assert main(["sql", "--help"]) == ExitStatus.OK
    assert "caudal sql [OPTIONS] [APP|SELECT] [SELECT]" in capsys.readouterr().out


def test_numbers_are_aligned_to_the_right(capsys: Capture) -> None:
    select = "SELECT * FROM (VALUES (1, 2.5, 'x'), (1000, 10.25, 'yes')) AS t(n, d, w)"
    assert main(["sql", select]) == ExitStatus.OK
    assert "    n       d   w" in (out := capsys.readouterr().out)
    assert "    1     2.5   x" in out


@pytest.mark.parametrize("engine", ["embedded", "split"])
def test_a_tiny_memory_limit_is_told_in_bytes(engine: str, here: Path, capsys: Capture) -> None:
    arguments = ["sql", "SELECT 1", "--memory-limit", "1500B", "--engine", engine]
    assert main(arguments) == ExitStatus.USAGE
    assert "a memory limit of 1,500 bytes is too small" in capsys.readouterr().err


def test_generate_where_nothing_can_be_written(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").touch()
    arguments = ["generate", "books", "--scale", "0.0001", "--out", str(tmp_path / "file")]
    assert main(arguments) == ExitStatus.OUTPUT
    assert "choose another --out" in capsys.readouterr().err
