"""`caudal sql "SELECT ... FROM 'x.csv'"`: files by name, read by Caudal's own rules."""

import csv
import gzip
import json
import re
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.harness.root_rights import reading_like_others

import caudal
from caudal.cli.main import main
from caudal.cli.status import ExitStatus

# An inch sign in a field, a stray quote, a short and a long record, an id that is none.
TOOLS = (
    "id,name,price,since\n"
    '1,6" ruler,1.50,2020-01-31\n'
    '2,"open,2,2020-02-01\n'
    "3,short\n"
    "4,long,1,2020-02-01,more\n"
    "5,saw,12.25,2021-05-05\n"
)

Capture = pytest.CaptureFixture[bytes]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tools.csv").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(select: str, capture: Capture, *more: str) -> tuple[list[dict[str, object]], str]:
    assert main(["sql", select, "--format", "json", *more]) == ExitStatus.OK
    out, err = capture.readouterr()
    return json.loads(out), err.decode()


@pytest.mark.parametrize("engine", ["embedded", "split"])
def test_csv_by_our_rules(data: Path, capsysbinary: Capture, engine: str) -> None:
    select = "SELECT id, name, price, since FROM 'tools.csv' ORDER BY id"
    rows, err = asked(select, capsysbinary, "--engine", engine)
    assert rows == [
        {"id": 1, "name": '6" ruler', "price": 1.5, "since": "2020-01-31"},
        {"id": 5, "name": "saw", "price": 12.25, "since": "2021-05-05"},
    ]
    for reason, line in (("unclosed quote", 3), ("too few fields", 4), ("too many fields", 5)):
        assert f"rejected: tools: 1 row: {reason} (line {line})" in err


def test_the_same_reject_file_and_strictness_as_a_run(data: Path, capsysbinary: Capture) -> None:
    select = "SELECT count(*) AS n FROM 'tools.csv'"
    rows, _ = asked(select, capsysbinary, "--rejects", "rejects.csv")
    assert rows == [{"n": 2}]
    rejected = list(csv.DictReader((data / "rejects.csv").read_text().splitlines()))
    assert [(row["file"], row["line"]) for row in rejected] == [
        ("tools.csv", "3"),
        ("tools.csv", "4"),
        ("tools.csv", "5"),
    ]
    assert main(["sql", select, "--strict"]) == ExitStatus.REJECTED_ROW
    assert b"tools.csv line 3: unclosed quote" in capsysbinary.readouterr().err


def test_a_value_that_does_not_fit_the_sniffed_type(data: Path, capsysbinary: Capture) -> None:
    lines = [f"{n},{n * 2}\n" for n in range(12_000)]
    (data / "long.csv").write_text("n,twice\n" + "".join(lines) + "x,1\n")
    rows, err = asked("SELECT sum(twice) AS s, typeof(max(n)) AS t FROM long.csv", capsysbinary)
    assert rows == [{"s": 12_000 * 11_999, "t": "BIGINT"}]
    assert "rejected: long: 1 row: n is not an integer (line 12002)" in err


def test_later_values_keep_every_digit_or_are_rejected(data: Path, capsysbinary: Capture) -> None:
    lines = "".join(f"{n},0.5,2020-01-01 10:00\n" for n in range(10_000))
    later = "007,0.5,2020-01-01\n8,0.1234567890123,2020-01-01\n9,0.5,2020-01-01T10:00+02:00\n"
    (data / "long.csv").write_text("n,part,at\n" + lines + later + "10,0.250000000000,2020-01-01\n")
    rows, err = asked("SELECT count(*) AS n, max(n) AS most FROM long.csv", capsysbinary)
    assert rows == [{"n": 10_001, "most": 9_999}]
    for line, reason in (
        (10_002, "n is not an integer"),
        (10_003, "part is not a number"),
        (10_004, "at is not a timestamp"),
    ):
        assert f"rejected: long: 1 row: {reason} (line {line})" in err


def test_a_statement_longer_than_any_file_name(capsysbinary: Capture) -> None:
    rows, _ = asked(f"SELECT {' + '.join(['1'] * 300)} AS n", capsysbinary)
    assert rows == [{"n": 300}]
    assert caudal.sql(f"SELECT 1 AS n, '{'x' * 5_000}' AS x").rows()[0]["n"] == 1
    assert main(["sql", f"SELECT * FROM '{'x' * 300}.csv'"]) == ExitStatus.DATA
    assert b"no file 'xxx" in capsysbinary.readouterr().err


def test_a_folder_that_may_not_be_read(tmp_path: Path, capsysbinary: Capture) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "x.csv").write_text("a\n1\n")
    closed.chmod(0)
    try:
        for arguments in (["sql", f"FROM '{closed}/x.csv'"], ["check", f"{closed}"]):
            with reading_like_others():
                status = main(arguments)
            assert status in (ExitStatus.USAGE, ExitStatus.DATA, ExitStatus.APPLICATION)
            err = capsysbinary.readouterr().err
            assert b"cannot read" in err
            assert b"Permission denied" in err
    finally:
        closed.chmod(0o700)


def test_files_of_a_pattern_have_the_columns_of_the_first(
    data: Path, capsysbinary: Capture
) -> None:
    (data / "g").mkdir()
    (data / "g" / "1.csv").write_text("a,b\n1,2\n")
    (data / "g" / "2.csv").write_text("a\n1\n")
    assert main(["sql", "SELECT * FROM 'g/*.csv'"]) == ExitStatus.DATA
    assert b"g/2.csv: no column 'b', which g/1.csv has; files of" in capsysbinary.readouterr().err


def test_columns_that_are_left_out_are_told(data: Path, capsysbinary: Capture) -> None:
    (data / "g").mkdir()
    (data / "g" / "1.csv").write_text(",a\n0,1\n")
    (data / "g" / "2.csv").write_text("a,b,c\n1,2,3\n")
    rows, err = asked("SELECT * FROM 'g/*.csv'", capsysbinary)
    assert rows == [{"a": 1}, {"a": 1}]
    told = "'b' (not in g/1.csv), 'c' (not in g/1.csv), columns without a name in the first line"
    assert f"note: g/*.csv: columns left out: {told}\n" in err
    _, err = asked("SELECT * FROM 'tools.csv'", capsysbinary)
    assert "note:" not in err


def test_thousands_of_columns(data: Path, capsysbinary: Capture) -> None:
    names = [f"c{place}" for place in range(1_000)]
    (data / "wide.csv").write_text(",".join(names) + "\n" + ",".join(names[:-1]) + ",7\n")
    rows, _ = asked("SELECT c0, c999, typeof(c999) AS t FROM wide.csv", capsysbinary)
    assert rows == [{"c0": "c0", "c999": 7, "t": "BIGINT"}]


def test_the_time_that_is_told_is_that_of_the_whole_command(
    data: Path, capsysbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caudal.cli.elapsed._BEGAN", perf_counter() - 100.0)
    _, err = asked("SELECT count(*) AS n FROM tools.csv", capsysbinary)
    assert re.search(r"sql: 1\d\d\.\d\d s in all\n", err)


def test_names_of_columns_stay_and_joins_aliases_and_ctes_work(
    data: Path, capsysbinary: Capture
) -> None:
    (data / "stock.csv").write_text("Tool Id,in/stock\n1,7\n5,0\n")
    select = """
        WITH tools AS (SELECT 9 AS nine)
        SELECT t.name, stock."in/stock", nine
        FROM 'tools.csv' AS t JOIN 'stock.csv' ON t.id = stock."Tool Id", tools
        WHERE t.name <> 'tools.csv' ORDER BY t.id
    """
    rows, _ = asked(select, capsysbinary)
    assert rows == [
        {"name": '6" ruler', "in/stock": 7, "nine": 9},
        {"name": "saw", "in/stock": 0, "nine": 9},
    ]


def test_compressed_files_and_globs(data: Path, capsysbinary: Capture) -> None:
    (data / "parts").mkdir()
    for part in "ab":
        with gzip.open(data / "parts" / f"{part}.csv.gz", "wt") as file:
            file.write(TOOLS)
    (data / "z.csv.zst").write_bytes(pa.compress(TOOLS.encode(), "zstd", asbytes=True))
    for name, rows in (("parts/a.csv.gz", 2), ("parts/*.csv.gz", 4), ("z.csv.zst", 2)):
        found, _ = asked(f"SELECT count(*) AS n FROM '{name}'", capsysbinary)
        assert found == [{"n": rows}], name


def test_relative_names_count_from_the_data_folder(
    data: Path, capsysbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"id": [1], "kind": ["measure"]}), data / "kinds.parquet")
    (data / "elsewhere").mkdir()
    monkeypatch.chdir(data / "elsewhere")
    select = "SELECT kind FROM 'tools.csv' AS t JOIN 'kinds.parquet' USING (id)"
    assert asked(select, capsysbinary, "-d", "..")[0] == [{"kind": "measure"}]
    assert main(["sql", select]) == ExitStatus.DATA
    assert b"no file 'tools.csv' in" in capsysbinary.readouterr().err


def test_a_profile_of_a_file(data: Path, capsysbinary: Capture) -> None:
    for select, operator in (
        ("SELECT count(*) AS n FROM 'tools.csv'", "read"),
        ("SELECT price, count(*) AS n FROM 'tools.csv' GROUP BY price", "group"),
    ):
        _, err = asked(select, capsysbinary, "--profile")
        assert "MB/s" in err
        assert operator in err


REFUSED = [
    (["SELECT 1", "--file", "t=x.csv"], ExitStatus.USAGE, "name the file in the SELECT"),
    (["FROM read_csv('tools.csv')", "-d", "."], ExitStatus.USAGE, "leave --data out"),
    (["FROM 'x.parquet'", "--engine", "split"], ExitStatus.USAGE, "only CSV files"),
    (["FROM 'nope.csv'"], ExitStatus.DATA, "no file 'nope.csv'"),
    (["FROM 'empty.csv'"], ExitStatus.DATA, "empty.csv is empty"),
    (["FROM 'semicolons.csv'"], ExitStatus.DATA, "say it with --delimiter"),
    (["SELECT nope FROM 'tools.csv'"], ExitStatus.USAGE, '"nope" not found'),
    (["books"], ExitStatus.USAGE, "give a SELECT after the application"),
    (["PIVOT 'tools.csv' ON id"], ExitStatus.USAGE, "one SELECT"),
    (["SELEC 1"], ExitStatus.USAGE, "syntax error"),
    (["SELECT CAST(name AS INTEGER) FROM 'tools.csv'"], ExitStatus.QUERY, "the query: "),
    (
        ["SELECT union_value(a := 1)", "-o", "o", "--format", "parquet"],
        ExitStatus.USAGE,
        "AS VARCHAR",
    ),
]


@pytest.mark.parametrize(("arguments", "status", "message"), REFUSED, ids=lambda x: str(x)[:40])
def test_refusals(
    data: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, message: str
) -> None:
    (data / "empty.csv").touch()
    (data / "semicolons.csv").write_text("a;b\n1;2;3\n1\n")
    pq.write_table(pa.table({"id": [1]}), data / "x.parquet")
    assert main(["sql", *arguments]) == status
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = [line for line in err.splitlines() if line.startswith("caudal: ")]
    assert message in line
