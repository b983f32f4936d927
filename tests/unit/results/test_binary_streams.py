"""Parquet and Arrow files that are written while their rows are computed."""

import io
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caudal.cli.formats import Format, encode_rows
from caudal.errors import UsageError
from caudal.results.representations import arrow_of, in_groups, parquet_of

ROWS = [pa.table({"n": [1, 2], "s": ["a", None]}), pa.table({"n": [3], "s": ["c"]})]


def read(data: bytes, form: Format) -> pa.Table:
    if form is Format.PARQUET:
        return pq.read_table(io.BytesIO(data))
    return pa.ipc.open_file(io.BytesIO(data)).read_all()


@pytest.mark.parametrize("form", [Format.PARQUET, Format.ARROW])
@pytest.mark.parametrize("parts", [ROWS, [ROWS[0].slice(0, 0)]])
def test_a_streamed_file_holds_the_rows(form: Format, parts: list[pa.Table]) -> None:
    data = b"".join(encode_rows(iter(parts), form))
    assert read(data, form).equals(pa.concat_tables(parts))


@pytest.mark.parametrize("write", [parquet_of, arrow_of])
def test_rows_are_written_before_all_are_there(write: type) -> None:
    taken = []

    def parts() -> Iterator[pa.Table]:
        for part in ROWS * 3:
            taken.append(part)
            yield part

    pieces = iter(write(in_groups(parts(), group_bytes=1)))
    assert next(pieces)
    assert len(taken) == 1
    pieces.close()  # the reader went away: no more rows are asked for
    assert len(taken) == 1


@pytest.mark.parametrize("form", [Format.PARQUET, Format.ARROW])
def test_a_huge_number_in_a_later_part_widens_the_column(form: Format) -> None:
    narrow = pa.table({"n": pa.array([Decimal(1)], pa.decimal128(38, 0))})
    huge = pa.table({"n": pa.array([Decimal(2**127)], pa.decimal256(39, 0))})
    found = read(b"".join(encode_rows([narrow, huge], form)), form)
    assert found["n"].to_pylist() == [Decimal(1), Decimal(2**127)]


def test_groups_are_neither_tiny_nor_the_whole() -> None:
    rows = pa.table({"n": pa.array(range(250_000), pa.int64())})
    groups = list(in_groups([rows], group_bytes=1_000_000))
    assert [group.num_rows for group in groups] == [200_000, 50_000]
    assert pa.concat_tables(groups).equals(rows)


def test_a_type_that_parquet_lacks_is_told_with_the_query() -> None:
    kind = pa.month_day_nano_interval()
    rows = pa.table({"i": pa.array([(1, 2, 3)], kind)})
    with pytest.raises(UsageError, match="q7: Parquet has no type for one of its columns"):
        list(encode_rows([rows], Format.PARQUET, "q7"))
