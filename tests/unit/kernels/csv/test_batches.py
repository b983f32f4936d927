"""Where a file is cut never changes what is read; lines and offsets stay true."""

import io
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from caudal.errors import DataError
from caudal.kernels.csv import Batch, cut_batches, read_batch, records

Found = tuple[list[tuple[int, str | None, str | None]], list[tuple[int, str]], int]

MARKS = st.sampled_from(
    [
        b'"',
        b'""',
        b",",
        b"\n",
        b"\r",
        b"\r\n",
        b"x",
        b"x,y\n",
        b'","',
        b'"\n',
        b"\xff",
        "ñ".encode(),
    ]
)
SHORT_RECORDS = 24


def cut(data: bytes, batch_bytes: int) -> list[Batch]:
    return list(cut_batches(io.BytesIO(data), "f.csv", batch_bytes=batch_bytes))


def read(data: bytes, batch_bytes: int) -> Found:
    """Rows with their lines, damaged lines with their reasons, repaired rows."""
    rows: list[tuple[int, str | None, str | None]] = []
    damaged: list[tuple[int, str]] = []
    repaired = 0
    for batch in cut(data, batch_bytes):
        found = read_batch(batch, ["a", "b"])
        columns = (column.to_pylist() for column in found.table.columns)
        rows += list(zip(batch.lines(found.starts).tolist(), *columns, strict=True))
        damaged += found.damaged
        repaired += found.repaired
    return rows, damaged, repaired


@settings(deadline=None, max_examples=300)
@given(
    body=st.one_of(st.lists(MARKS, max_size=60).map(b"".join), st.binary(max_size=90)),
    batch_bytes=st.integers(1, 40),
)
@example(body=b'"' + b"x" * 50 + b'",1\n' * 3, batch_bytes=3)
def test_batches_in_the_same_memory_are_the_same(body: bytes, batch_bytes: int) -> None:
    data = b"a,b\n" + body
    passing = cut_batches(io.BytesIO(data), "f.csv", batch_bytes=batch_bytes, passing=True)
    found = [(one.offset, one.first_line, one.newlines, one.data.tobytes()) for one in passing]
    lasting = cut(data, batch_bytes)
    assert found == [(o.offset, o.first_line, o.newlines, o.data.tobytes()) for o in lasting]


def test_passing_batches_take_no_more_memory_the_more_they_are() -> None:
    data = b"a,b\n" + b"1,2\n" * 1000
    batches = list(cut_batches(io.BytesIO(data), "f.csv", batch_bytes=100, passing=True))
    places = {one.data.__array_interface__["data"][0] // 64 for one in batches}
    assert len(batches) > 30
    assert len(places) <= 4  # at most the memory of the header and one that was too small


@settings(deadline=None, max_examples=600)
@given(
    body=st.one_of(st.lists(MARKS, max_size=40).map(b"".join), st.binary(max_size=60)),
    batch_bytes=st.integers(1, 40),
    max_record_bytes=st.sampled_from([SHORT_RECORDS, records.MAX_RECORD_BYTES]),
)
@example(body=b'"x",y\n\rz,1\n', batch_bytes=11, max_record_bytes=100)
@example(body=b'"a\nb","c"x,1\ny,z\n', batch_bytes=14, max_record_bytes=100)
@example(body=b'1,"\nq\n3,4\n",y,z\n', batch_bytes=21, max_record_bytes=100)
@example(body=b'"a\nb",' + b"c" * SHORT_RECORDS, batch_bytes=20, max_record_bytes=SHORT_RECORDS)
def test_any_batch_size_reads_the_same(
    body: bytes, batch_bytes: int, max_record_bytes: int
) -> None:
    data = b"a,b\n" + body
    with patch.object(records, "MAX_RECORD_BYTES", max_record_bytes):
        assert read(data, batch_bytes) == read(data, len(data) + 1)


@settings(deadline=None, max_examples=150)
@given(data=st.lists(MARKS, max_size=20).map(b"".join), batch_bytes=st.integers(1, 9))
def test_any_batch_size_finds_the_same_header(data: bytes, batch_bytes: int) -> None:
    def header(size: int) -> object:
        try:
            return cut(data, size)[0].header
        except DataError as error:
            return str(error)

    assert header(batch_bytes) == header(len(data) + 1)


@settings(deadline=None, max_examples=100)
@given(st.lists(MARKS, max_size=40).map(b"".join), st.integers(1, 40))
def test_batches_are_the_file_in_order(body: bytes, batch_bytes: int) -> None:
    data = b"a,b\n" + body
    batches = cut(data, batch_bytes)
    assert b"".join(batch.data.tobytes() for batch in batches) == body
    for number, batch in enumerate(batches):
        assert batch.number == number
        assert data[batch.offset :].startswith(batch.data.tobytes())
        assert batch.first_line == 1 + data[: batch.offset].count(b"\n")


def test_batches_are_about_as_long_as_asked_for() -> None:
    batches = cut(b"a,b\n" + b'1,"x\ny"\n' * 1000, 100)
    assert all(len(batch.data) <= 108 for batch in batches)
    assert len(batches) < 100


def test_a_file_of_one_line_gives_one_batch_without_records() -> None:
    [batch] = cut(b"a,b", 1)
    assert batch.header.names == ("a", "b")
    assert len(batch.data) == 0


def test_lines_count_the_newlines_inside_fields() -> None:
    data = b'a,b\n1,"x\ny"\n\r\n2,z\n3\n'
    assert read(data, 100) == (
        [(2, "1", "x\ny"), (5, "2", "z")],
        [(6, "too few fields")],
        0,
    )


class Pipe:
    """A stream that delivers its parts one by one."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = list(parts)

    def readinto(self, buffer: memoryview, /) -> int:
        part = self._parts.pop(0) if self._parts else b""
        buffer[: len(part)] = part
        return len(part)


def test_a_stream_may_deliver_less_than_asked_for() -> None:
    [batch] = cut_batches(Pipe(b"a,", b"b\n1", b",2", b"\n"), "pipe", batch_bytes=64)
    assert batch.data.tobytes() == b"1,2\n"


class TestLimits:
    """Rule 4, with a small bound."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(records, "MAX_RECORD_BYTES", 32)

    @pytest.mark.parametrize("batch_bytes", [8, 1000])
    def test_a_record_beyond_the_bound_is_lost_alone(self, batch_bytes: int) -> None:
        data = b"a,b\n1,2\n3," + b"x" * 40 + b"\n5,6\n"
        assert read(data, batch_bytes)[:2] == (
            [(2, "1", "2"), (4, "5", "6")],
            [(3, "longer than 8 MiB")],
        )

    @pytest.mark.parametrize("batch_bytes", [8, 1000])
    def test_a_quote_that_closes_beyond_the_bound_costs_its_line(self, batch_bytes: int) -> None:
        data = b'a,b\n1,"2\n' + b"3,4\n" * 10 + b'5"\n'
        rows, damaged, _ = read(data, batch_bytes)
        assert rows == [(line, "3", "4") for line in range(3, 13)]
        assert damaged == [(2, "unclosed quote"), (13, "too few fields")]

    def test_a_record_may_reach_the_bound(self) -> None:
        longest = b'1,"' + b"x" * 28 + b'"'
        assert len(longest) == 32
        assert len(read(b"a,b\n" + longest + b"\n", 1000)[0]) == 1
        assert read(b"a,b\n" + longest + b"\n", 7)[1] == []

    def test_a_line_without_end_is_an_error(self) -> None:
        with pytest.raises(DataError, match=r"f\.csv: line 2 does not end within"):
            read(b"a,b\n" + b"x" * 1000, 16)

    def test_a_header_beyond_the_bound_is_an_error(self) -> None:
        with pytest.raises(DataError, match=r"first line: longer than"):
            read(b"x" * 1000, 16)

    def test_blank_lines_without_end_are_an_error(self) -> None:
        with pytest.raises(DataError, match="nothing but blank lines"):
            read(b"\n" * 1000, 16)
