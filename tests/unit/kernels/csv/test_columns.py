"""Fields as columns of text: nulls, doubled quotes, bytes that are not UTF-8."""

import io

import pyarrow as pa
import pytest

from caudal.kernels.csv import TextColumns, cut_batches, read_batch


def read(data: bytes, *columns: str) -> TextColumns:
    [batch] = cut_batches(io.BytesIO(data), "f.csv")
    return read_batch(batch, columns)


def test_an_empty_field_is_null_quoted_or_not() -> None:
    assert read(b'a,b\n,""\n"",x\n', "a", "b").table.to_pydict() == {
        "a": [None, None],
        "b": [None, "x"],
    }


def test_columns_come_in_the_order_asked_for() -> None:
    table = read(b"a,b,c\n1,2,3\n", "c", "a").table
    assert table.column_names == ["c", "a"]
    assert table.to_pylist() == [{"c": "3", "a": "1"}]


def test_all_columns_are_text() -> None:
    assert read(b"a,b\n1,2.5\n", "a", "b").table.schema.types == [pa.string_view()] * 2


def test_rows_are_counted_when_no_column_is_wanted() -> None:
    assert read(b"a,b\n1,2\n3\n4,5\n").table.num_rows == 2


def test_no_rows() -> None:
    found = read(b"a,b\n", "a")
    assert found.table.to_pydict() == {"a": []}
    assert tuple(found.damaged) == ()


def test_a_name_that_stands_twice_means_its_first_column() -> None:
    assert read(b"a,a\n1,2\n", "a").table.to_pydict() == {"a": ["1"]}


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (b"caf\xe9", "caf\ufffd"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"cut \xf0\x9f\x8e", "cut \ufffd"),
    ],
)
def test_broken_utf8_is_replaced_and_its_row_kept(field: bytes, text: str) -> None:
    found = read(b"a,b\n1,fine\n2," + field + b"\n", "a", "b")
    assert found.table.to_pydict() == {"a": ["1", "2"], "b": ["fine", text]}
    assert found.repaired == 1


def test_a_row_is_repaired_once_however_many_fields_are_broken() -> None:
    assert read(b"a,b\n\xff,\xff\nx,\xff\ny,z\n", "a", "b").repaired == 2


def test_a_replacement_character_in_the_file_is_no_repair() -> None:
    found = read("a\n\ufffd\n".encode() + b"\xff\n", "a")
    assert found.table["a"].to_pylist() == ["\ufffd", "\ufffd"]
    assert found.repaired == 1


def test_broken_bytes_in_columns_nobody_wants_do_not_count() -> None:
    assert read(b"a,b\n1,\xff\n", "a").repaired == 0
