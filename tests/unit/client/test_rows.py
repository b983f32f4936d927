"""Rows written as CSV are read back exactly as they were."""

import datetime
import decimal
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caudal.client.batches import BatchCutter, RowWriter
from caudal.client.rows import pieces_of
from caudal.errors import DataError
from caudal.formats import batch as batch_format
from caudal.kernels import csv

TEXTS = st.one_of(
    st.none(),
    st.text(alphabet=st.sampled_from(" ,\"'\r\n;\tabé€😀\\0"), max_size=8),
    st.text(max_size=8).filter(lambda text: text.isprintable()),
)
TABLES = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(*[TEXTS] * width), min_size=1, max_size=20)
)


def read_back(data: bytes, names: tuple[str, ...]) -> list[tuple[str | None, ...]]:
    header = ",".join(names).encode() + b"\n"
    found: list[tuple[str | None, ...]] = []
    for batch in csv.cut_batches(io.BytesIO(header + data), "rows"):
        read = csv.read_batch(batch, names, ())
        assert tuple(read.damaged) == ()
        assert read.repaired == 0
        columns = [column.to_pylist() for column in read.table.columns]
        found += zip(*columns, strict=True)
    return found


def as_read(rows: list[tuple[str | None, ...]]) -> list[tuple[str | None, ...]]:
    """Files cannot tell an empty text from none."""
    return [tuple(value or None for value in row) for row in rows]


@given(TABLES)
def test_texts_come_back_whatever_is_in_them(rows: list[tuple[str | None, ...]]) -> None:
    names = tuple(f"c{number}" for number in range(len(rows[0])))
    arrow = pa.table([pa.array(column, pa.string()) for column in zip(*rows, strict=True)],
                     names=list(names))  # fmt: skip
    dictionaries = [dict(zip(names, row, strict=True)) for row in rows]
    for given_rows, columns in ((rows, names), (dictionaries, None), (arrow, None)):
        pieces = list(pieces_of(given_rows, columns))
        assert {found for found, _ in pieces} == {names}
        assert read_back(b"".join(data for _, data in pieces), names) == as_read(rows)


def test_values_are_written_as_their_sql_reads_them() -> None:
    row = {
        "flag": True,
        "count": 3,
        "share": 0.1,
        "price": decimal.Decimal("1.50"),
        "day": datetime.date(2001, 2, 3),
        "moment": datetime.datetime(2001, 2, 3, 4, 5, 6, 120),
        "authors": ["Ann", "O'Neil, B"],
        "missing": None,
    }
    [(_, data)] = pieces_of([row], None)
    assert data.decode() == (
        'true,3,0.1,1.50,2001-02-03,2001-02-03 04:05:06.000120,"[\'Ann\', ""O\'Neil, B""]",\n'
    )
    [(_, of_arrow)] = pieces_of(pa.Table.from_pylist([row]), None)
    [mine], [theirs] = (read_back(one, tuple(row)) for one in (data, of_arrow))
    assert mine == theirs


@pytest.mark.parametrize(
    ("rows", "columns", "complaint"),
    [
        ([{"a": 1}, {"a": 1, "b": 2}], None, "has a column 'b'"),
        ([(1, 2)], None, "need column names"),
        ([(1, 2)], ["a"], "has 2 fields"),
        (["text"], ["a"], "is a str"),
        ([{"a": object()}], None, "holds a object"),
        ([{"a": "\ud800"}], None, "not valid Unicode"),
        ([{"a": b"bytes"}], None, "holds a bytes"),
    ],
)
def test_what_is_no_row_is_refused(rows: object, columns: list[str] | None, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        list(pieces_of(rows, columns))


def test_a_writer_numbers_its_batches_and_counts_lines() -> None:
    writer = RowWriter("t", BatchCutter(20, compress=False), ("a", "b"))
    made = [*writer.batches([("x", "1")] * 1500), *writer.batches([("y\nz", "2")]), *writer.rest()]
    batches = [batch_format.decode(one if isinstance(one, bytes) else one(), "") for one in made]
    assert [index.number for index, _ in batches] == [0, 1, 2]
    assert [index.first_line for index, _ in batches] == [1, 1025, 1501]
    assert b"".join(records for _, records in batches) == b"x,1\n" * 1500 + b'"y\nz",2\n'
    with pytest.raises(DataError, match="columns c after rows with a, b"):
        list(writer.batches(pa.table({"c": [1]})))
