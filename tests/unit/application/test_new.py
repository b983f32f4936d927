"""`caudal new`: the folder it writes loads, runs and passes its own case."""

import gzip
import json
import os
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caudal.application import load_application
from caudal.application.cases import run_cases
from caudal.application.new import data_folder, write_application
from caudal.embedded import engine
from caudal.embedded.engine import run
from caudal.errors import DataError, OutputError, UsageError
from caudal.files.sources import Sources
from caudal.model import Query
from caudal.results.answers import Answers

ORDERS = """\
orderId,Customer Name,price,code,placed,shippedAt,gift,tags,parts,ratio,note
1,Ana,9.50,007,2024-01-02,2024-01-02T10:00+02,true,"['a', 'b']","[{'name': 'x'}]",0.1234567890123,
2,"Bo, Jr.",10,012,2024-02-29,2024-03-01T00:00:00Z,False,[],[],2.5e-12,"6"" long"
3,Ana,,100,,,,,,,
"""

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str) -> Path:
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def ask(folder: Path, data: Path, sql: str = "") -> Answers:
    """Run the folder's queries over the original files, or one more SELECT instead."""
    app = load_application(folder)
    if sql:
        app = replace(app, queries=(Query("asked", "", sql, "test"),))
    return run(app, Sources(data))


def types(folder: Path, data: Path, table: str) -> dict[str, str]:
    answer = ask(folder, data, f"SELECT * FROM {table}")["asked"].table
    return {field.name: str(field.type) for field in answer.schema}


def test_the_folder_loads_runs_and_passes_its_case(tmp_path: Path, write: Write) -> None:
    orders = write("orders.csv", ORDERS)
    people = write("people.csv", "name,city\nAna,Salta\nBo,Salta\nCy,Jujuy\n")
    folder = tmp_path / "shop"
    written = write_application(folder, [orders, people])
    assert [path.relative_to(folder).as_posix() for path in written] == [
        "app.toml",
        "cases/first_rows/expected.json",
        "cases/first_rows/orders.csv",
        "cases/first_rows/people.csv",
        "queries/orders_rows.sql",
        "queries/orders_top_customer_name.sql",
        "queries/people_rows.sql",
        "queries/people_top_city.sql",
        "tables/orders.sql",
        "tables/people.sql",
    ]
    assert all(path.is_file() for path in written)
    answers = ask(folder, orders.parent)
    assert answers["orders_rows"].rows() == [{"row_count": 3}]
    assert answers["people_top_city"].rows() == [
        {"city": "Salta", "row_count": 2},
        {"city": "Jujuy", "row_count": 1},
    ]
    assert not answers.rejects
    assert [outcome.problems for outcome in run_cases(load_application(folder))] == [()]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "shop"]


def test_columns_get_types_and_names(tmp_path: Path, write: Write) -> None:
    path = write("orders.csv", ORDERS)
    write_application(tmp_path / "shop", [path])
    assert types(tmp_path / "shop", path.parent, "orders") == {
        "order_id": "int64",
        "customer_name": "string",
        "price": "decimal128(38, 9)",
        "code": "string",
        "placed": "date32[day]",
        "shipped_at": "timestamp[us, tz=UTC]",
        "gift": "bool",
        "tags": "list<l: string>",
        "parts": "list<l: string>",
        "ratio": "double",
        "note": "string",
    }
    rows = ask(tmp_path / "shop", path.parent, "SELECT tags, parts, code FROM orders")["asked"]
    assert rows.rows()[0] == {"tags": ["a", "b"], "parts": ["x"], "code": "007"}


def test_later_text_that_does_not_convert_rejects_its_row(tmp_path: Path, write: Write) -> None:
    path = write("orders.csv", ORDERS)
    write_application(tmp_path / "shop", [path])
    write(
        "orders.csv", ORDERS + 'x,Cy,,1,,,,,,,\n4,Cy,,1,2024-13-01,,,,,,\n5,,,1,,,yes,"(1,)",,,\n'
    )
    answers = ask(tmp_path / "shop", path.parent, "SELECT * FROM orders")
    assert answers.rejects.counts() == {
        "orders": {
            "orderId is not an integer": 1,
            "placed is not a YYYY-MM-DD date": 1,
            "gift is not true or false": 1,
        }
    }


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2", "+3"], "int64"),
        (["1", "2.5"], "decimal128(38, 9)"),
        (["1", "0"], "int64"),
        (["0.5", "0"], "decimal128(38, 9)"),
        (["01", "2"], "string"),
        (["99999999999999999999"], "decimal128(38, 9)"),
        (["1e300", "2"], "double"),
        (["nan", "inf"], "string"),
        (["1", "x"], "string"),
        (["true", "FALSE"], "bool"),
        (["yes", "no"], "string"),
        (["0", "1"], "int64"),
        (["2024-01-01", "2024-02-30"], "string"),
        (["2024-01-01", "2024-01-01 10:00"], "timestamp[us]"),
        (["2024-01-01 10:00:00.123456", "2024-01-01"], "timestamp[us]"),
        (["2024-01-01 10:00:00.1234567"], "string"),
        (
            ["2024-01-01T10:11:12+02:00", "2024-01-01 10:11-05", "2024-01-01T10:00Z"],
            "timestamp[us, tz=UTC]",
        ),
        (["2024-01-01T10:11:12+02:00", "2024-01-01 10:11"], "string"),
        (["0.123456789", "1.500000000000"], "decimal128(38, 9)"),
        (["0.1234567891", "1"], "double"),
        (["0.12345678901234567", "1e-5"], "double"),
        (["0.123456789012345678"], "string"),
        (["1e-400"], "string"),
        (["-0.5", ".5", "5."], "decimal128(38, 9)"),
        (["00.5", "1"], "string"),
        (["2024", "2023"], "int64"),
        (["[]", "[]"], "string"),
        (["[1, 2]"], "string"),
        (["['a']", "none"], "string"),
        (["['a']", "[]"], "list<l: string>"),
        ([""], "string"),
    ],
    ids=str,
)
def test_a_type_is_taken_when_every_value_converts(
    tmp_path: Path, write: Write, values: list[str], kind: str
) -> None:
    path = write("t.csv", "\n".join(["n,v", *(f'{n},"{value}"' for n, value in enumerate(values))]))
    write_application(tmp_path / "app", [path])
    assert types(tmp_path / "app", path.parent, "t")["v"] == kind


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("reject,id_text,id", ["reject_2", "id_text", "id"]),
        ("order,group,timestamp", ["order", "group", "timestamp"]),
        ("a b,a-b,A_b2", ["a_b", "a_b_2", "a_b2"]),
        ('"say ""hi""",it\'s,$x', ["say_hi", "it_s", "x"]),
        ("País,名前,2nd", ["pais", "column_2", "n_2nd"]),
        ("row_count,,x", ["row_count", "x"]),
        ('"two\nlines",b,c', ["two_lines", "b", "c"]),
    ],
)
def test_awkward_column_names(tmp_path: Path, write: Write, header: str, names: list[str]) -> None:
    path = write("t.csv", f"{header}\n1,x,2\n2,x,3\n3,y,4\n")
    write_application(tmp_path / "app", [path])
    assert list(types(tmp_path / "app", path.parent, "t")) == names
    assert len(ask(tmp_path / "app", path.parent)) >= 1


@pytest.mark.parametrize(
    ("file", "table"),
    [
        ("Order Items.csv", "order_items"),
        ("2024.csv", "n_2024"),
        ("order.csv", "order_records"),
        ("raw.csv", "raw_records"),
        ("名.csv", "records"),
        ("a[1].csv", "a_1"),
        ("notes.txt", "notes_txt"),
    ],
)
def test_awkward_file_names(tmp_path: Path, write: Write, file: str, table: str) -> None:
    path = write(file, "a,b\n1,x\n")
    write_application(tmp_path / "app", [path])
    assert [entry.name for entry in load_application(tmp_path / "app").tables] == [table]
    assert ask(tmp_path / "app", path.parent)[f"{table}_rows"].rows() == [{"row_count": 1}]


def test_lists_are_counted_by_element(tmp_path: Path, write: Write) -> None:
    path = write("t.csv", "id,tags\n1,\"['a', 'b']\"\n2,\"['a']\"\n")
    write_application(tmp_path / "app", [path])
    assert ask(tmp_path / "app", path.parent)["t_top_tags"].rows() == [
        {"tags": "a", "row_count": 2},
        {"tags": "b", "row_count": 1},
    ]


def test_a_file_without_rows_or_without_text(tmp_path: Path, write: Write) -> None:
    files = [write("empty.csv", "a,b\n"), write("numbers.csv", "n\n1\n")]
    write_application(tmp_path / "app", files)
    assert set(ask(tmp_path / "app", files[0].parent)) == {
        "empty_rows",
        "empty_top_a",
        "numbers_rows",
    }


def test_compressed_files_and_parquet(tmp_path: Path, write: Write) -> None:
    packed = write("packed.csv.gz", "")
    packed.write_bytes(gzip.compress(b"a,b\n1,x\n"))
    columnar = packed.with_name("columnar.parquet")
    pq.write_table(pa.table({"n": [1, 2]}), columnar)
    write_application(tmp_path / "app", [packed, columnar])
    assert ask(tmp_path / "app", packed.parent)["columnar_rows"].rows() == [{"row_count": 2}]
    assert [outcome.problems for outcome in run_cases(load_application(tmp_path / "app"))] == [()]


def test_files_of_several_folders(tmp_path: Path, write: Write) -> None:
    files = [write("north/sales.csv", "a\n1\n"), write("shops.csv", "a\nx\n")]
    assert data_folder(files) == tmp_path / "data"
    write_application(tmp_path / "app", files)
    entries = tomllib.loads((tmp_path / "app" / "app.toml").read_text())["tables"]
    assert [entry["files"] for entry in entries] == [["north/sales.csv"], ["shops.csv"]]
    assert len(ask(tmp_path / "app", data_folder(files))) == 3


def test_damaged_records_do_not_matter(tmp_path: Path, write: Write) -> None:
    path = write("t.csv", 'a,b\n1,x\n2\n"3"x,y\n4,z\n')
    write_application(tmp_path / "app", [path])
    case = tmp_path / "app" / "cases" / "first_rows"
    assert (case / "t.csv").read_text() == "a,b\n1,x\n4,z\n"
    assert json.loads((case / "expected.json").read_text())["rejects"] == {}


def test_long_lists_of_columns_are_wrapped(tmp_path: Path, write: Write) -> None:
    names = [f"a rather long column name {n}" for n in range(30)]
    path = write("t.csv", ",".join(names) + "\n" + ",".join("1" * 30) + "\n")
    for written in write_application(tmp_path / "app", [path]):
        if written.suffix in (".toml", ".sql"):
            assert all(len(line) <= 100 for line in written.read_text().splitlines())


def test_an_empty_folder_may_exist(tmp_path: Path, write: Write) -> None:
    (tmp_path / "app").mkdir()
    write_application(tmp_path / "app", [write("t.csv", "a\n1\n")])
    assert (tmp_path / "app" / "app.toml").is_file()


class TestRefusals:
    """One line each, and nothing is written."""

    def refuse(self, folder: Path, files: list[Path]) -> str:
        before = sorted(folder.parent.rglob("*"))
        with pytest.raises((UsageError, DataError, OutputError)) as caught:
            write_application(folder, files)
        assert sorted(folder.parent.rglob("*")) == before
        return str(caught.value)

    def test_a_folder_that_holds_something(self, tmp_path: Path, write: Write) -> None:
        path = write("t.csv", "a\n1\n")
        assert self.refuse(path.parent, [path]) == (
            f"{path.parent} exists already: choose another name, or remove it first"
        )

    def test_a_file_in_the_folders_place(self, write: Write) -> None:
        path = write("t.csv", "a\n1\n")
        assert "exists already" in self.refuse(path, [path])

    def test_no_files(self, tmp_path: Path) -> None:
        assert "at least one CSV file" in self.refuse(tmp_path / "app", [])

    def test_a_missing_file(self, tmp_path: Path) -> None:
        absent = tmp_path / "t.csv"
        assert self.refuse(tmp_path / "app", [absent]).startswith(f"no file {absent}: ")

    def test_an_empty_file(self, tmp_path: Path, write: Write) -> None:
        path = write("t.csv", "")
        assert self.refuse(tmp_path / "app", [path]).startswith(f"{path} is empty")

    def test_two_files_for_one_table(self, tmp_path: Path, write: Write) -> None:
        one, other = write("t.csv", "a\n1\n"), write("more/T.csv", "a\n1\n")
        assert self.refuse(tmp_path / "app", [one, other]) == (
            f"{one} and {other} would both be table 't': rename one"
        )
        assert "would both be table" in self.refuse(tmp_path / "app", [one, one])

    def test_separators_that_are_not_certain(self, tmp_path: Path, write: Write) -> None:
        path = write("t.csv", "a;b\n1;2;3\n1\n")
        assert "say it with --delimiter" in self.refuse(tmp_path / "app", [path])

    def test_names_that_are_not_utf8(self, tmp_path: Path, write: Write) -> None:
        path = write("t.csv", "a\n1\n")
        odd = path.with_name(os.fsdecode(b"caf\xe9.csv"))
        odd.write_text("a\n1\n")
        assert r"caf\xe9.csv is not UTF-8" in self.refuse(tmp_path / "app", [odd])
        folder = tmp_path / os.fsdecode(b"caf\xe9")
        assert r"caf\xe9 is not UTF-8" in self.refuse(folder, [path])

    def test_a_place_that_cannot_be_written(self, tmp_path: Path, write: Write) -> None:
        path = write("t.csv", "a\n1\n")
        assert self.refuse(path / "app", [path]).startswith(f"cannot write {path / 'app'}: ")


def test_a_failure_half_way_leaves_nothing(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("t.csv", "a\n1\n")

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "bind_or_recall", fail)
    with pytest.raises(KeyboardInterrupt):
        write_application(tmp_path / "app", [path])
    assert [entry.name for entry in tmp_path.iterdir()] == ["data"]
