"""From the files of a table to columns of text: which files, which formats, which errors."""

import gzip
import os
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caudal.application.adhoc import files_application
from caudal.embedded.engine import run
from caudal.errors import DataError
from caudal.files.cleaning import Wanted
from caudal.files.find import find_files
from caudal.files.pieces import TextRows, column_names, pieces
from caudal.files.sources import Sources
from caudal.files.spool import forget

CSV = b"id,name\n" + b"".join(b"%d,n%d\n" % (n, n) for n in range(1000))


def read(
    path: Path, columns: Sequence[str] = ("id",), batch_bytes: int = 1 << 20
) -> list[TextRows]:
    return [
        piece.read() for piece in pieces(path, Wanted("t", tuple(columns)), batch_bytes=batch_bytes)
    ]


def values(path: Path, column: str = "id", batch_bytes: int = 1 << 20) -> list[str | None]:
    found = read(path, [column], batch_bytes)
    return [value for rows in found for value in rows.table[column].to_pylist()]


def write(path: Path, data: bytes = b"a\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


class TestFindFiles:
    def test_names_in_the_order_given(self, tmp_path: Path) -> None:
        second, first = write(tmp_path / "b.csv"), write(tmp_path / "a.csv")
        assert find_files(tmp_path, ["b.csv", "a.csv"], "t") == [second, first]

    def test_a_glob_gives_its_files_sorted(self, tmp_path: Path) -> None:
        parts = [write(tmp_path / "parts" / f"p{n}.csv") for n in (2, 0, 1)]
        write(tmp_path / "parts" / "notes.txt")
        (tmp_path / "parts" / "p9.csv").mkdir()
        assert find_files(tmp_path, ["parts/p*.csv"], "t") == sorted(parts)
        assert find_files(tmp_path, ["**/p[01].csv"], "t") == sorted(parts)[:2]

    def test_an_absolute_name_or_glob(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv")
        assert find_files(Path("elsewhere"), [str(path)], "t") == [path]
        assert find_files(Path("elsewhere"), [f"{tmp_path}/*.csv"], "t") == [path]

    @pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.zst", "a.parquet"])
    def test_other_forms_of_the_same_name(self, tmp_path: Path, name: str) -> None:
        path = write(tmp_path / name)
        assert find_files(tmp_path, ["a.csv"], "t") == [path]
        assert find_files(tmp_path, ["*.csv"], "t") == [path]

    def test_the_plain_form_comes_first(self, tmp_path: Path) -> None:
        write(tmp_path / "a.csv.gz")
        path = write(tmp_path / "a.csv")
        assert find_files(tmp_path, ["a.csv"], "t") == [path]

    def test_a_file_found_twice_is_read_once(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv")
        assert find_files(tmp_path, ["a.csv", "*.csv", "a.csv"], "t") == [path]

    def test_a_name_that_looks_like_a_glob(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a[1].csv")
        write(tmp_path / "a1.csv")
        assert find_files(tmp_path, ["a[1].csv"], "t") == [path]

    def test_an_absent_file_is_named_with_what_to_do(self, tmp_path: Path) -> None:
        with pytest.raises(DataError) as caught:
            find_files(tmp_path, ["a.csv"], "ratings")
        assert str(caught.value) == (
            f"table ratings: no file 'a.csv' in {tmp_path}; "
            "point to it with --data DIR or --file ratings=PATH"
        )

    def test_a_pipe_is_not_called_absent(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "a.csv")
        with pytest.raises(DataError, match=r"a\.csv is not a regular file: copy it to one"):
            find_files(tmp_path, ["a.csv"], "t")

    def test_a_pipe_is_read_once_for_types_and_rows(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "a.csv")
        writing = Thread(target=(tmp_path / "a.csv").write_text, args=("a;b\n1;x\n2;y\n",))
        writing.start()
        app = files_application("SELECT sum(a) AS a, max(b) AS b FROM 'a.csv'", tmp_path)
        writing.join()
        answers = run(app, Sources(tmp_path))
        assert answers["sql"].rows() == [{"a": 3, "b": "y"}]
        assert [file.name for file in Sources(tmp_path).files(app.tables[0])] == [
            str(tmp_path / "a.csv")
        ]
        forget()

    def test_an_absent_folder_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="because there is no folder"):
            find_files(tmp_path / "nowhere", ["a.csv"], "t")


class TestCsv:
    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("a.csv", CSV),
            ("a.csv.gz", gzip.compress(CSV)),
            ("a.csv.gz", gzip.compress(CSV[:3000]) + gzip.compress(CSV[3000:])),
            ("a.csv.zst", pa.compress(CSV, codec="zstd", asbytes=True)),
        ],
        ids=["plain", "gz", "gz of several members", "zst"],
    )
    @pytest.mark.parametrize("batch_bytes", [100, 1 << 20])
    def test_plain_and_compressed(
        self, tmp_path: Path, name: str, data: bytes, batch_bytes: int
    ) -> None:
        path = write(tmp_path / name, data)
        assert values(path, "name", batch_bytes) == [f"n{n}" for n in range(1000)]

    def test_rows_know_their_lines(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", b'id,text\n1,"x\ny"\n2,z\n3\n')
        [rows] = read(path)
        assert rows.lines(np.array([0, 1])).tolist() == [2, 4]
        assert tuple(rows.damaged) == ((5, "too few fields"),)

    def test_positions_grow_to_the_size_of_the_file(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", CSV)
        positions = [
            piece.position for piece in pieces(path, Wanted("t", ("id",)), batch_bytes=1000)
        ]
        assert positions == sorted(positions)
        assert positions[-1] == len(CSV)

    def test_repaired_rows_are_counted(self, tmp_path: Path) -> None:
        assert [rows.repaired for rows in read(write(tmp_path / "a.csv", b"id\n\xff\n2\n"))] == [1]

    def test_a_missing_column_is_named(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", b"id,title\n1,x\n")
        with pytest.raises(DataError) as caught:
            read(path, ["id", "name"])
        assert str(caught.value) == (
            f"{path}: no column 'name', which table t needs; its columns are: id, title"
        )

    def test_many_columns_are_not_all_listed(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", ",".join(f"c{n}" for n in range(500)).encode())
        with pytest.raises(DataError, match=r"c0, c1, .*c11, …$"):
            read(path)

    def test_the_second_column_of_a_name_gets_a_number(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", b"id,x,x\n1,2,3\n")
        assert values(path) == ["1"]
        assert column_names(path) == ("id", "x", "x_2")
        (rows,) = read(path, ["x", "x_2"])
        assert rows.table.to_pylist() == [{"x": "2", "x_2": "3"}]

    def test_a_missing_column_is_found_in_a_file_without_rows(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no column 'id'"):
            read(write(tmp_path / "a.csv", b"x\n"))

    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("a.csv.gz", gzip.compress(CSV)[:-10]),
            ("a.csv.zst", pa.compress(CSV, codec="zstd", asbytes=True)[:-10]),
            ("a.csv.gz", b"no gzip at all"),
            ("a.csv.gz", gzip.compress(CSV)[:-8] + b"checksum"),
            ("a.parquet", CSV),
            ("a.parquet", b""),
        ],
        ids=["cut gz", "cut zst", "not gz", "damaged gz", "not Parquet", "empty Parquet"],
    )
    def test_a_file_that_cannot_be_read_is_one_line(
        self, tmp_path: Path, name: str, data: bytes
    ) -> None:
        path = write(tmp_path / name, data)
        with pytest.raises(DataError) as caught:
            read(path)
        assert str(caught.value).startswith(f"cannot read {path}: ")
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("data", [b"", gzip.compress(b"")], ids=["no bytes", "no text"])
    def test_an_empty_gz_is_an_empty_file(self, tmp_path: Path, data: bytes) -> None:
        with pytest.raises(DataError, match=r"a\.csv\.gz is empty"):
            read(write(tmp_path / "a.csv.gz", data))

    def test_a_folder_in_place_of_a_file(self, tmp_path: Path) -> None:
        with pytest.raises(DataError) as caught:
            read(tmp_path)
        assert str(caught.value) == f"cannot read {tmp_path}: Is a directory"


class TestParquet:
    def write(self, path: Path, **columns: object) -> Path:
        pq.write_table(pa.table(columns), path, row_group_size=2)
        return path

    @pytest.mark.parametrize(
        ("column", "texts"),
        [
            ([1, None, -3], ["1", None, "-3"]),
            ([4.0, 4.5, 0.1], ["4", "4.5", "0.1"]),
            ([Decimal("1.50"), None], ["1.50", None]),
            ([True, False], ["true", "false"]),
            ([date(2001, 2, 3)], ["2001-02-03"]),
            ([datetime(2001, 2, 3, 4, 5, 6)], ["2001-02-03 04:05:06.000000"]),
            (["x", "", None], ["x", None, None]),
            (pa.array(["x", "y", "x"]).dictionary_encode(), ["x", "y", "x"]),
            (pa.array(["x"], pa.large_string()), ["x"]),
            (pa.nulls(2), [None, None]),
        ],
    )
    def test_typed_columns_become_text(
        self, tmp_path: Path, column: object, texts: list[str | None]
    ) -> None:
        path = self.write(tmp_path / "a.parquet", id=column)
        assert values(path) == texts
        assert read(path)[0].table.schema.types == [pa.string()]

    def test_columns_come_in_the_order_asked_for(self, tmp_path: Path) -> None:
        path = self.write(tmp_path / "a.parquet", a=[1], b=[2], c=[3])
        assert read(path, ["c", "a"])[0].table.to_pylist() == [{"c": "3", "a": "1"}]

    def test_rows_are_numbered_from_one(self, tmp_path: Path) -> None:
        path = self.write(tmp_path / "a.parquet", id=list(range(100_000)))
        first, second = read(path)
        assert first.lines(np.array([0])).tolist() == [1]
        row = int(second.table["id"][0].as_py())
        assert second.lines(np.array([0])).tolist() == [row + 1]

    def test_rows_are_counted_when_no_column_is_wanted(self, tmp_path: Path) -> None:
        path = self.write(tmp_path / "a.parquet", id=[[1], [2], [3]])
        assert sum(rows.table.num_rows for rows in read(path, [])) == 3

    def test_positions_end_at_the_size_of_the_file(self, tmp_path: Path) -> None:
        path = self.write(tmp_path / "a.parquet", id=list(range(100_000)))
        *_, last = pieces(path, Wanted("t", ("id",)), batch_bytes=1)
        assert last.position == path.stat().st_size

    def test_a_missing_column_is_named(self, tmp_path: Path) -> None:
        path = self.write(tmp_path / "a.parquet", x=[1])
        with pytest.raises(DataError, match="no column 'id', which table t needs"):
            read(path)

    def test_a_nested_column_cannot_be_text(self, tmp_path: Path) -> None:
        path = self.write(tmp_path / "a.parquet", id=[[1, 2]])
        with pytest.raises(DataError, match=r"column 'id' has type list<.*>, which cannot be read"):
            read(path)


class TestColumnNames:
    @pytest.mark.parametrize(
        ("name", "data"), [("a.csv", CSV), ("a.csv.gz", gzip.compress(CSV))], ids=["csv", "gz"]
    )
    def test_of_csv(self, tmp_path: Path, name: str, data: bytes) -> None:
        assert column_names(write(tmp_path / name, data)) == ("id", "name")

    def test_of_parquet(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"id": [1], "name": ["x"]}), tmp_path / "a.parquet")
        assert column_names(tmp_path / "a.parquet") == ("id", "name")

    @pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
    def test_of_an_absent_file(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(DataError, match=r"cannot read .*: .*No such file"):
            column_names(tmp_path / name)
