"""The SELECT of `caudal sql`: where it comes from, and where a mistake in it is."""

import io
from pathlib import Path

import pytest

from caudal.cli.main import main
from caudal.cli.status import ExitStatus

Capture = pytest.CaptureFixture[bytes]


def standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def answer(words: list[str], capsysbinary: Capture) -> bytes:
    assert main(["sql", *words, "--format", "csv", "--quiet"]) == ExitStatus.OK
    return capsysbinary.readouterr().out


def test_a_file_with_the_select(tmp_path: Path, capsysbinary: Capture) -> None:
    path = tmp_path / "query.sql"
    path.write_text("\ufeff-- a title\nSELECT $n AS m;\n")
    assert answer(["-f", str(path), "--param", "n=42"], capsysbinary) == b"m\n42\n"


@pytest.mark.parametrize("words", [[], ["-"], ["-f", "-"]])
def test_a_select_from_a_pipe(
    words: list[str], capsysbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    standard_input(monkeypatch, b"SELECT 1 AS a;")
    assert answer(words, capsysbinary) == b"a\n1\n"


@pytest.mark.parametrize("words", [["movies"], ["movies", "-"], ["movies", "-f", "-"]])
def test_a_select_over_an_application_from_a_pipe(
    words: list[str], tmp_path: Path, capsysbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ratings.csv").write_text("userId,movieId,rating\n1,1,4\n")
    standard_input(monkeypatch, b"SELECT count(*) AS n FROM ratings")
    assert answer([*words, "-d", str(tmp_path)], capsysbinary) == b"n\n1\n"


@pytest.mark.parametrize("comment", ["-- all of it\n", "--all\n", "/* all */ "])
def test_a_select_that_begins_with_a_comment(comment: str, capsysbinary: Capture) -> None:
    assert answer([f"{comment}SELECT 1 AS a"], capsysbinary) == b"a\n1\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-f", "/nowhere.sql"], "cannot read /nowhere.sql: No such file"),
        (["movies", "SELECT 1", "-f", "x.sql"], "as an argument or with -f, not both"),
        (["movies"], "give a SELECT after the application"),
        ([], "the query is empty: give a SELECT"),
        (["FROM books"], 'books is a table of books: caudal sql books "SELECT …"'),
        (["SELECT * FROM ratings"], 'ratings is a table of movies: caudal sql movies "SELECT …"'),
    ],
)
def test_what_is_missing_is_said(
    words: list[str], message: str, capsysbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    standard_input(monkeypatch, b"")
    assert main(["sql", *words]) == ExitStatus.USAGE
    assert message in capsysbinary.readouterr().err.decode()


@pytest.mark.parametrize(
    ("words", "line", "carets"),
    [
        (["SELECT nope FROM range(3)"], "  line 1: SELECT nope FROM range(3)", 17),
        (["SELECT 1,\n  nope FROM range(3)"], "  line 2:   nope FROM range(3)", 12),
        (["SELECT 'é', 2 FRM x y"], "  line 1: SELECT 'é', 2 FRM x y", 28),
        (["SELECT 1\nFRM x y"], "  line 2: FRM x y", 14),
        (["movies", "SELECT\n rating, nope\nFROM ratings"], "  line 2:  rating, nope", 19),
    ],
)
def test_a_mistake_is_pointed_at(
    words: list[str], line: str, carets: int, capsysbinary: Capture
) -> None:
    assert main(["sql", *words]) == ExitStatus.USAGE
    told = capsysbinary.readouterr().err.decode().splitlines()
    assert told[1] == line
    assert told[2].index("^") == carets


def test_a_group_without_a_command_says_so(capsysbinary: Capture) -> None:
    assert main(["series"]) == ExitStatus.USAGE
    assert (
        capsysbinary.readouterr().err
        == b"caudal: give a command (caudal series --help shows how)\n"
    )


def test_flags_take_no_value_in_help(capsysbinary: Capture) -> None:
    for command in ("run", "sql", "submit", "up", "series", "shell"):
        assert main([command, "--help"]) == ExitStatus.OK
        assert b"<bool>" not in capsysbinary.readouterr().out
    assert main(["--help"]) == ExitStatus.OK
    assert b"<bool>" not in capsysbinary.readouterr().out


@pytest.mark.parametrize(
    ("select", "shown", "under"),
    [
        ("SELECT nam FROM 'x.csv'", "line 1: SELECT nam FROM 'x.csv'", "nam"),
        (
            "SELECT b.id\nFROM x.csv b WHERE foo(id)",
            "line 2: FROM x.csv b WHERE foo(id)",
            "foo(id)",
        ),
        (
            f"SELECT 1 AS {'a' * 90} FROM \"x.csv\" JOIN 'y.csv' USING (id) WHERE name = 'a'",
            f"line 1: SELECT 1 AS {'a' * 90} "
            "FROM \"x.csv\" JOIN 'y.csv' USING (id) WHERE name = 'a'",
            "name",
        ),
    ],
)
def test_carets_point_into_what_was_written(
    select: str,
    shown: str,
    under: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("id,name\n1,Ana\n")
    Path("y.csv").write_text("id,name\n1,Ana\n")
    assert main(["sql", select]) == ExitStatus.USAGE
    line, carets = capsys.readouterr().err.splitlines()[-2:]
    assert line.strip() == shown
    assert line[carets.index("^") :].startswith(under)
    assert carets.strip() == "^" * len(under)
