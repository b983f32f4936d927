"""Files as people have them: by `sql`, by `new` and in an application, the same rows."""

import bz2
import gzip
import io
import json
import lzma
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from caudal.application import load_application
from caudal.application.cases import run_cases
from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.files.spool import forget

openpyxl: Any = pytest.importorskip("openpyxl")

Capture = pytest.CaptureFixture[str]

PLAIN = "id;name;price;day\n1;Zoë;1,50;31/12/2020\n2;x;1.234,75;01/02/2021\n"
ROWS = [
    {"id": 1, "name": "Zoë", "price": 1.5, "day": "2020-12-31"},
    {"id": 2, "name": "x", "price": 1234.75, "day": "2021-02-01"},
]


def workbook() -> bytes:
    book = openpyxl.Workbook()
    for row in (["Report"], [], ["id", "name", "price", "day"], [1, "Zoë", 1.5, "2020-12-31"], [],
                [2, "x", 1234.75, "2021-02-01"]):  # fmt: skip
        book.active.append(row)
    sink = io.BytesIO()
    book.save(sink)
    return sink.getvalue()


def zipped(data: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("inner.csv", data)
    return sink.getvalue()


LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
FILES = {
    "semicolons.csv": PLAIN.encode(),
    "western.csv": PLAIN.encode("cp1252"),
    "wide.csv": PLAIN.encode("utf-16"),
    "tabs.tsv": PLAIN.replace(";", "\t").encode(),
    "bars.txt": PLAIN.replace(";", "|").encode(),
    "nothing": PLAIN.encode(),
    "preamble.csv": f"Sales of today\n\n{PLAIN}".encode(),
    "trailing.csv": PLAIN.replace("\n", ";\n").replace("day;\n", "day\n").encode(),
    "packed.csv.bz2": bz2.compress(PLAIN.encode()),
    "packed.csv.xz": lzma.compress(PLAIN.encode()),
    "packed.csv.gz": gzip.compress(PLAIN.encode()),
    "packed": gzip.compress(PLAIN.encode()),
    "packed.zip": zipped(PLAIN.encode()),
    "book.xlsx": workbook(),
    "lines.txt": LINES.encode(),
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(capture: Capture, *arguments: str) -> list[dict[str, object]]:
    assert main(["sql", *arguments, "--format", "jsonl"]) == ExitStatus.OK
    return [json.loads(line) for line in capture.readouterr().out.splitlines()]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", FILES)
def test_sql_and_new_find_the_same(data: Path, capsys: Capture, name: str) -> None:
    (data / name).write_bytes(FILES[name])
    select = "SELECT id, name, price, CAST(day AS VARCHAR) AS day FROM"
    assert asked(capsys, f"{select} '{name}' ORDER BY id") == ROWS
    assert main(["new", "app", name]) == ExitStatus.OK
    app = load_application(data / "app")
    capsys.readouterr()
    rows = asked(capsys, "./app", f"{select} {app.tables[0].name} ORDER BY id", "--engine", "split")
    assert rows == ROWS
    assert [case.problems for case in run_cases(app)] == [()]


def test_options_say_what_is_not_certain(data: Path, capsys: Capture) -> None:
    (data / "t.csv").write_bytes("# x\n1^'a^b'^2,5^03/04/05\n2^é^1,234^01/02/03\n".encode("cp850"))
    how = (
        "--delimiter ^ --quote ' --encoding cp850 --decimal , --comment # --date-format %d/%m/%y "
        "--no-header --names n,t,p,d --filename"
    )
    select = "SELECT n, t, p, CAST(d AS VARCHAR) AS d, filename FROM 't.csv'"
    rows = asked(capsys, select, *how.split())
    assert rows == [
        {"n": 1, "t": "a^b", "p": 2.5, "d": "2005-04-03", "filename": "t.csv"},
        {"n": 2, "t": "é", "p": 1.234, "d": "2003-02-01", "filename": "t.csv"},
    ]


def test_files_of_a_glob_with_other_columns(data: Path, capsys: Capture) -> None:
    (data / "1.csv").write_text("a,b\n1,x\n")
    (data / "2.csv").write_text("b;c\ny;2\n")
    select = "SELECT a, b, c, filename FROM '*.csv' ORDER BY filename"
    for engine in ("embedded", "split"):
        more = ("--union-by-name", "--filename", "--engine", engine)
        assert asked(capsys, select, *more) == [
            {"a": 1, "b": "x", "c": None, "filename": "1.csv"},
            {"a": None, "b": "y", "c": 2, "filename": "2.csv"},
        ]


@pytest.mark.parametrize("source", ["'-'", "'/dev/stdin'", "read_csv('/dev/stdin')"])
def test_standard_input(data: Path, capsys: Capture, source: str) -> None:
    (data / "input").write_text("a,b\n1,x\n2,y\n")
    forget()
    before = os.dup(0)
    given = os.open(data / "input", os.O_RDONLY)
    try:
        os.dup2(given, 0)
        assert asked(capsys, f"SELECT count(*) AS n, max(b) AS b FROM {source}") == [
            {"n": 2, "b": "y"}
        ]
    finally:
        forget()
        os.dup2(before, 0)
        os.close(before)
        os.close(given)


def test_duplicate_names_are_told(data: Path, capsys: Capture) -> None:
    (data / "t.csv").write_text("id,Id,id\n1,2,3\n")
    assert main(["sql", "SELECT * FROM 't.csv'", "--format", "csv"]) == ExitStatus.OK
    out, err = capsys.readouterr()
    assert "note: t.csv: columns with the same name are called 'Id_2', 'id_3'" in err
    assert out == "id,Id_2,id_3\n1,2,3\n"


def test_app_toml_says_it(data: Path, capsys: Capture) -> None:
    (data / "t.csv").write_text("skipped\n1!'a!b'!2,5\n")
    app = data / "app"
    (app / "tables").mkdir(parents=True)
    (app / "queries").mkdir()
    toml = (
        '[[tables]]\nname = "t"\nfiles = ["t.csv"]\ncolumns = ["n", "p"]\ndelimiter = "!"\n'
        "quote = \"'\"\nskip = 1\nheader = false\nnames = ['n', 't', 'p']\ndecimal = {p = ','}\n"
    )
    (app / "app.toml").write_text(toml)
    (app / "tables" / "t.sql").write_text("SELECT n, exact_decimal(raw.p) AS p FROM raw")
    (app / "queries" / "q.sql").write_text("SELECT * FROM t")
    for engine in ("embedded", "split"):
        rows = asked(capsys, "./app", "SELECT n, p FROM t", "--engine", engine)
        assert rows == [{"n": "1", "p": 2.5}]
    (app / "app.toml").write_text(toml.replace('delimiter = "!"', 'delimiter = "!!"'))
    assert main(["check", "./app"]) == ExitStatus.APPLICATION
    assert "app.toml: table 't': delimiter '!!': give one" in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["embedded", "split"])
def test_explain_over_files(data: Path, capsys: Capture, engine: str) -> None:
    (data / "t.csv").write_text("a;b\n1;x\n")
    select = "SELECT b, count(*) AS n FROM 't.csv' WHERE a > 0 GROUP BY b"
    assert main(["explain", select, "--engine", engine]) == ExitStatus.OK
    assert " t" in capsys.readouterr().out
    assert main(["explain", "SELECT 1 FROM 'nope.csv'"]) == ExitStatus.DATA
