"""Answers and arguments that are odd: two columns of one name, markup, commands to the terminal."""

import json
from pathlib import Path

import pytest

from caudal.cli.main import main
from caudal.cli.status import ExitStatus

BOOKS = "Title,authors,publisher,publishedDate,categories\nA,['X'],P,1995,['Fiction']\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "books_data.csv").write_text(BOOKS)
    return tmp_path


def test_columns_of_one_name_keep_their_values(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    select = "SELECT 1 AS a, 2 AS a, 3 AS b"
    assert main(["sql", select, "--format", "csv"]) == ExitStatus.OK
    assert capsysbinary.readouterr().out == b"a,a,b\n1,2,3\n"
    assert main(["sql", select, "--format", "json"]) == ExitStatus.OK
    rows = json.loads(capsysbinary.readouterr().out)
    assert rows == [{"a": 1, "a_1": 2, "b": 3}]


def test_data_is_never_markup(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "SELECT '[/] :x: [red]no' AS \"[b]\""]) == ExitStatus.OK
    out = capsys.readouterr().out
    assert "[/] :x: [red]no" in out
    assert "[b]" in out


def test_data_does_not_command_the_terminal(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    odd = "chr(27) || '[31m' || chr(0) || chr(8238) || 'x' || chr(155) || chr(10) || 'ñ'"
    select = f'SELECT {odd} AS "a\033b"'
    assert main(["sql", select]) == ExitStatus.OK
    out = capsysbinary.readouterr().out.decode()
    assert "\\x1b[31m\\x00\\u202ex\\x9b ñ" in out
    assert "a\\x1bb" in out
    assert not {"\033", "\0", "\u202e", "\x9b"} & set(out)
    assert main(["sql", select, "--format", "json"]) == ExitStatus.OK
    rows = json.loads(capsysbinary.readouterr().out)
    assert rows == [{"a\033b": "\033[31m\0\u202ex\x9b\nñ"}]


def test_planning_reads_no_file_for_others(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = data / "secret.csv"
    secret.write_text("password\n")
    for sql in (f"SELECT nope FROM read_csv('{secret}')", f"SELECT * FROM '{secret}'"):
        status = main(["sql", "books", sql, "-d", str(data), "--engine", "split"])
        assert status != ExitStatus.OK
        assert "password" not in capsys.readouterr().err


def test_a_file_in_the_way_of_a_folder(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = data / "answers"
    taken.touch()
    assert main(["sql", "SELECT 1", "--out", str(taken)]) == ExitStatus.OUTPUT
    assert "cannot write" in capsys.readouterr().err


def test_batch_sizes_have_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "books", "--batch-size", "1TB"]) == ExitStatus.USAGE
    assert "choose from 4KiB to 1GiB" in capsys.readouterr().err
