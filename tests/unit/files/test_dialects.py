"""Tables in any dialect give the rows that were written."""

import csv
import io
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from caudal.files.batches import Packing, cut_files
from caudal.files.cleaning import Wanted
from caudal.files.inputs import InputFile
from caudal.files.pieces import pieces
from caudal.files.places import LocalPlace
from caudal.formats import batch as batch_format
from caudal.model import Reading

TEXTS = st.text(st.sampled_from("ab1 ,;|\t'\"#\n\r.é€語"), max_size=6)
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(TEXTS, min_size=width, max_size=width), max_size=6)
)
DIALECTS = st.tuples(
    st.sampled_from([",", ";", "\t", "|", "^"]),
    st.sampled_from(['"', "'"]),
    st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-32", "utf-8-sig"]),
    st.sampled_from(["\n", "\r\n"]),
)
Dialect = tuple[str, str, str, str]


def written(path: Path, rows: list[list[str]], dialect: Dialect) -> Reading:
    """Write a table with a header; return how it is read."""
    delimiter, quote, encoding, end = dialect
    text = io.StringIO()
    width = len(rows[0]) if rows else 2
    returns = any("\r" in one for row in rows for one in row)  # which Python does not quote
    writer = csv.writer(
        text,
        delimiter=delimiter,
        quotechar=quote,
        lineterminator=end,
        quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL,
    )
    writer.writerow([f"c{place}" for place in range(width)])
    writer.writerows(rows)
    path.write_bytes(text.getvalue().encode(encoding))
    mark = encoding in ("utf-16", "utf-32", "utf-8-sig")
    return Reading(
        delimiter=delimiter, quote=quote, encoding=None if mark else encoding, header=True, skip=0
    )


def read_rows(file: InputFile, width: int, batch_bytes: int = 1 << 20) -> list[list[str]]:
    wanted = Wanted("t", tuple(f"c{place}" for place in range(width)))
    found = [piece.read() for piece in pieces(file, wanted, batch_bytes=batch_bytes)]
    assert not any(len(one.damaged) or one.repaired for one in found)
    rows = [row for one in found for row in one.table.to_pylist()]
    return [[value or "" for value in row.values()] for row in rows]


@given(TABLES, DIALECTS, st.sampled_from([7, 1 << 20]))
@settings(max_examples=60, deadline=None)
@example([["a;b", "c\nd"], ["", '"']], (";", '"', "utf-8", "\n"), 7)
@example([["a,b"]], ("|", "'", "utf-16", "\r\n"), 7)
def test_what_python_writes(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], dialect: Dialect, size: int
) -> None:
    path = tmp_path_factory.mktemp("dialect") / "t.csv"
    reading = written(path, rows, dialect)
    width = len(rows[0]) if rows else 2
    assert read_rows(InputFile(LocalPlace(path), reading), width, size) == rows


@given(TABLES, DIALECTS)
@settings(max_examples=20, deadline=None)
def test_what_duckdb_reads(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], dialect: Dialect
) -> None:
    delimiter, quote, _, end = dialect
    rows = [[text.replace("\r", "") for text in row] for row in rows]
    path = tmp_path_factory.mktemp("dialect") / "t.csv"
    reading = written(path, rows, (delimiter, quote, "utf-8", end))
    width = len(rows[0]) if rows else 2
    try:
        types = {f"c{place}": "VARCHAR" for place in range(width)}
        theirs = duckdb.execute(
            "FROM read_csv($1, delim=$2, quote=$3, escape=$3, header=true, all_varchar=true, "
            "auto_detect=false, strict_mode=true, columns=$4)",
            [str(path), delimiter, quote, types],
        ).fetchall()
    except duckdb.Error:
        return  # they disagree about what is damaged
    if len(theirs) == len(rows):  # DuckDB takes some lines with nothing but quotes for empty
        ours = read_rows(InputFile(LocalPlace(path), reading), width)
        assert ours == [[value or "" for value in row] for row in theirs]


@pytest.mark.parametrize("size", [9, 1 << 20])
def test_damage_is_that_of_the_same_csv(tmp_path: Path, size: int) -> None:
    text = 'c0,c1\n1,2\n"a"b,3\n4\n5,6,7\n\n"open,8\n9,"x\ny"\n"z\n'
    (tmp_path / "comma.csv").write_text(text)
    (tmp_path / "bar.csv").write_text(text.replace(",", "|").replace("x", ",").replace('"', "'"))
    plain = InputFile(LocalPlace(tmp_path / "comma.csv"), Reading(header=True, skip=0))
    other = Reading(delimiter="|", quote="'", header=True, skip=0)
    reports = [
        [
            (line, reason)
            for piece in pieces(file, Wanted("t", ("c0", "c1")), batch_bytes=size)
            for line, reason in piece.read().damaged
        ]
        for file in (plain, InputFile(LocalPlace(tmp_path / "bar.csv"), other))
    ]
    assert reports[0] == reports[1]
    assert [line for line, _ in reports[0]] == [3, 4, 5, 7, 10]


def test_a_cluster_gets_csv(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a;b\n1,5;café\n2;x\n".encode("cp1252"))
    file = InputFile(LocalPlace(tmp_path / "t.csv"), Reading(decimal=","))
    (data,) = cut_files("t", [file], 1 << 20, packing=Packing.NONE)
    index, records = batch_format.decode(data, "batch")
    assert (index.columns, index.first_line, records) == (("a", "b"), 2, "1.5,café\n2,x\n".encode())


def test_rows_of_excel_and_json_have_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"a": 1.50, "b": "x\\ny"}\n\nnope\n{"b": [1, 2], "a": ""}\n')
    (piece,) = pieces(tmp_path / "t.jsonl", Wanted("t", ("a", "b")), batch_bytes=1 << 20)
    rows = piece.read()
    assert rows.table.to_pylist() == [{"a": "1.50", "b": "x\ny"}, {"a": None, "b": "[1, 2]"}]
    assert rows.lines(pa.array([0, 1]).to_numpy()).tolist() == [1, 4]
    assert list(rows.damaged) == [(3, "not a JSON object")]
