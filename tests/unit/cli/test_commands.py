"""The command line as a user meets it: data on standard output, one line per error."""

import csv
import gc
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caudal import errors
from caudal.cli.main import main
from caudal.cli.program import COMMANDS, load
from caudal.cli.status import ExitStatus, status_of

MOVIES = """\
id,title,genres,production_countries,spoken_languages,release_date,budget,revenue,overview
1,Uno,"[{'name': 'Drama'}]","[{'name': 'Argentina'}, {'name': 'Spain'}]",[],2001-01-01,10,20,good
2,Dos,"[{'name': 'Drama'}]","[{'name': 'Argentina'}]",[],2002-01-01,10,5,terrible
oops,Tres,[],[],[],2003-01-01,0,0,so
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "movies_metadata.csv").write_text(MOVIES)
    (folder / "credits.csv").write_text("id,cast,crew\n1,\"[{'name': 'Ana'}]\",[]\n")
    (folder / "ratings.csv").write_text("userId,movieId,rating\n1,1,4.5\n1,2,3\n")
    return folder


def test_json_is_one_object_and_all_that_standard_output_holds(
    data: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["run", "movies", "-d", str(data), "--format", "json"]) == ExitStatus.OK
    out, err = capsysbinary.readouterr()
    answers = json.loads(out)
    assert list(answers) == ["q1", "q2", "q3", "q4", "q5"]
    assert answers["q1"] == [{"title": "Uno", "genres": ["Drama"]}]
    assert answers["q3"][0] == {"kind": "MAX", "title": "Uno", "rating": 4.5}
    assert b"rejected: movies: 1 row: id is not an integer (line 4)" in err


def test_tables_show_answers_and_titles(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "movies", "-d", str(data), "-q", "q1"]) == ExitStatus.OK
    out, _ = capsys.readouterr()
    assert "q1  Films of 2000 to 2009" in out
    assert "Uno" in out


def test_csv_of_one_query(data: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["run", "movies", "-d", str(data), "-q", "q1", "--format", "csv"]) == ExitStatus.OK
    rows = list(csv.reader(io.StringIO(capsysbinary.readouterr().out.decode())))
    assert rows == [["title", "genres"], ["Uno", '["Drama"]']]


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "arrow"])
def test_out_writes_a_file_per_query(data: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "answers"
    arguments = ["run", "movies", "-d", str(data), "--format", form, "--out", str(out)]
    assert main(arguments) == ExitStatus.OK
    assert sorted(path.name for path in out.iterdir()) == [f"q{n}.{form}" for n in range(1, 6)]
    if form == "parquet":
        assert pq.read_table(out / "q1.parquet").num_rows == 1
    if form == "arrow":
        assert pa.ipc.open_file(out / "q1.arrow").read_all().num_rows == 1


def test_rejects_go_to_a_file(data: Path, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.csv"
    assert main(["run", "movies", "-d", str(data), "--rejects", str(rejects)]) == ExitStatus.OK
    rows = list(csv.DictReader(rejects.read_text().splitlines()))
    assert [(row["table"], row["line"], row["reason"]) for row in rows] == [
        ("movies", "4", "id is not an integer")
    ]


def test_parameters_and_other_files(
    data: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    other = tmp_path / "more.csv"
    other.write_text("userId,movieId,rating\n9,2,5\n")
    arguments = ["run", "movies", "-d", str(data), "-q", "q3", "--format", "json"]
    assert main([*arguments, "--file", f"ratings={other}"]) == ExitStatus.OK
    assert json.loads(capsysbinary.readouterr().out)["q3"][0]["title"] == "Dos"
    assert main([*arguments, "--param", "country=Chile"]) == ExitStatus.OK
    assert json.loads(capsysbinary.readouterr().out)["q3"][0]["title"] is None


@pytest.mark.parametrize("engine", ["embedded", "split"])
def test_titles_tell_values_that_are_not_the_defaults(
    data: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    arguments = ["run", "movies", "-d", str(data), "-q", "q1", "--engine", engine]
    assert main([*arguments, "--param", "country=Chile", "--param", "partner=Spain"]) == 0
    assert "Spain produced together (country=Chile)\n" in capsys.readouterr().out
    assert main([*arguments, "--param", "country=Argentina"]) == ExitStatus.OK
    assert "Spain produced together\n" in capsys.readouterr().out


def test_sql_over_an_application_and_over_a_file(
    data: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    select = "SELECT count(*) AS films FROM movies"
    assert main(["sql", "movies", select, "-d", str(data), "--format", "json"]) == ExitStatus.OK
    assert json.loads(capsysbinary.readouterr().out) == [{"films": 2}]
    select = f"SELECT sentiment(overview) AS s FROM '{data}/movies_metadata.csv' WHERE title='Uno'"
    assert main(["sql", select, "--format", "json"]) == ExitStatus.OK
    assert json.loads(capsysbinary.readouterr().out) == [{"s": 0.7}]


ERRORS = [
    (["run", "nope"], ExitStatus.USAGE, "no application 'nope'"),
    (["run", "movies", "-d", "/nowhere"], ExitStatus.USAGE, "no folder /nowhere"),
    (["run", "movies", "-d", ".", "-q", "q9"], ExitStatus.USAGE, "has no query 'q9'"),
    (["run", "movies", "-d", "EMPTY"], ExitStatus.DATA, "no file 'movies_metadata.csv'"),
    (["run", "movies", "-d", ".", "--param", "x"], ExitStatus.USAGE, "write it as NAME=VALUE"),
    (["run", "movies", "-d", ".", "--param", "x=1"], ExitStatus.USAGE, "has no parameter 'x'"),
    (["run", "movies", "-d", ".", "--file", "x=1"], ExitStatus.USAGE, "has no table 'x'"),
    (["run", "movies", "-d", ".", "--format", "csv"], ExitStatus.USAGE, "add --out DIR"),
    (["run", "movies", "-d", ".", "--format", "xml"], ExitStatus.USAGE, "xml"),
    (["run", "movies", "-d", ".", "--memory-limit", "lots"], ExitStatus.USAGE, "is not a size"),
    (["run", "movies", "-d", ".", "--sentiment", "x"], ExitStatus.USAGE, "sentiment"),
    (["run", "movies", "--memory-limit", "1KB"], ExitStatus.USAGE, "give at least 500MB"),
    (["run", "movies", "--partitions", "0"], ExitStatus.USAGE, "(caudal run --help shows how)"),
    (["run", "movies", "--file", "ratings"], ExitStatus.USAGE, "write it as TABLE=PATH"),
    (["run", "movies", "--file", "ratings="], ExitStatus.USAGE, "write it as TABLE=PATH"),
    (["run", "movies", "--rejects", "EMPTY"], ExitStatus.OUTPUT, "Is a directory"),
    (["run", ""], ExitStatus.USAGE, "no application ''"),
    (["sql", " ; "], ExitStatus.USAGE, "the query is empty"),
    (["sql", "SELECT $x"], ExitStatus.USAGE, "no value for $x: give --param x=VALUE"),
    (["sql", "SELECT nope"], ExitStatus.USAGE, "nope"),
    (["sql", "DROP TABLE x"], ExitStatus.USAGE, "one SELECT"),
    (["sql", "SELECT 1; SELECT 2"], ExitStatus.USAGE, "one SELECT"),
    (["sql", "SELECT CAST('x' AS INTEGER)"], ExitStatus.QUERY, "convert"),
    (["generate", "cars", "--out", "OUT"], ExitStatus.USAGE, "cars"),
    (["generate", "books", "--out", "OUT", "--scale", "0"], ExitStatus.USAGE, "scale"),
    (["frobnicate"], ExitStatus.USAGE, "frobnicate"),
]


@pytest.mark.parametrize(("arguments", "status", "message"), ERRORS, ids=lambda x: str(x)[:40])
def test_a_mistake_gives_one_line_and_its_own_status(
    arguments: list[str],
    status: ExitStatus,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"EMPTY": str(tmp_path), "OUT": str(tmp_path / "out")}
    assert main([places.get(argument, argument) for argument in arguments]) == status
    out, err = capsys.readouterr()
    assert out == ""
    line, *place = err.splitlines()
    assert line.startswith("caudal: ")
    assert message in line
    assert place == [] or (place[0].startswith("  line 1: ") and place[1].strip(" ^") == "")


def test_strict_stops_at_the_first_rejected_row(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "movies", "-d", str(data), "--strict"]) == ExitStatus.REJECTED_ROW
    assert "movies_metadata.csv line 4: id is not an integer" in capsys.readouterr().err


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--debug", "run", "nope"]) == ExitStatus.USAGE
    assert "Traceback" in capsys.readouterr().err


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("run", "sql", "explain", "check", "test", "new", "generate"):
        assert main([command, "--help"]) == ExitStatus.OK
        assert f"caudal {command}" in capsys.readouterr().out


def test_every_error_has_a_status_of_its_own_kind() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    for kind in kinds:
        if kind is not errors.CaudalError:
            assert status_of(kind("x")) not in (ExitStatus.OK, ExitStatus.BUG), kind


def test_every_status_is_distinct() -> None:
    assert len({int(status) for status in ExitStatus}) == len(ExitStatus)


def test_garbage_is_collected_once_a_command_is_loaded() -> None:
    gc.disable()
    try:
        load(next(one for one in COMMANDS if one.name == "apps"))
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.enable()
        gc.unfreeze()


def test_a_limit_tells_what_was_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "big.csv").write_text("id,word\n" + "1,a word\n" * 150_000)
    sql = ["sql", "SELECT * FROM 'big.csv' LIMIT 2", "-d", str(tmp_path), "--format", "csv"]
    assert main(sql) == ExitStatus.OK
    out, err = capsys.readouterr()
    assert out == "id,word\n1,a word\n1,a word\n"
    assert "note: big: the answer needed 1.0 of 1.4 MB; the rest was not read" in err
    assert main([*sql, "--quiet"]) == ExitStatus.OK
    assert capsys.readouterr().err == ""
