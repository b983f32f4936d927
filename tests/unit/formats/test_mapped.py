"""The mapped object: what goes in comes out, and damage never passes for data."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caudal.errors import FormatError
from caudal.formats import mapped

SCHEMA = pa.schema([("title", pa.string()), ("n", pa.int64())])


def object_of(slices: list[list[tuple[str, int]]], rejects: list[tuple[int, str]]) -> bytes:
    tables = [
        pa.table([[title for title, _ in rows], [n for _, n in rows]], schema=SCHEMA)
        for rows in slices
    ]
    return mapped.encode(
        table="books",
        batch=7,
        file="books_data.csv",
        rows=sum(map(len, slices)),
        repaired=0,
        rejects=mapped.reject_rows(mapped.Rejection(*one) for one in rejects),
        stages={"scan_1": tables},
    )


rows = st.lists(st.tuples(st.text(max_size=5), st.integers(-5, 5)), max_size=4)


@given(st.lists(rows, min_size=1, max_size=4), st.lists(st.tuples(st.integers(1, 99), st.text())))
def test_what_goes_in_comes_out(
    slices: list[list[tuple[str, int]]], rejects: list[tuple[int, str]]
) -> None:
    reader = mapped.open_bytes(object_of(slices, rejects))
    assert reader.index.batch == 7
    assert reader.rejects() == [(*one, 1) for one in rejects]
    for number, expected in enumerate(slices):
        found = reader.slice("scan_1", number)
        assert found.schema == SCHEMA
        assert list(zip(*found.to_pydict().values(), strict=True)) == expected


def test_a_fold_reads_only_its_slice() -> None:
    data = object_of([[("a" * 999, n) for n in range(999)], [("b", 1)]], [])
    asked: list[tuple[int, int]] = []

    def read(offset: int, length: int) -> bytes:
        asked.append((offset, length))
        return data[offset : offset + length]

    reader = mapped.MappedReader(read, "key")
    assert reader.slice("scan_1", 1).num_rows == 1
    assert len(asked) == 3  # head, index, slice
    assert sum(length for _, length in asked) < len(data) / 2


@given(st.data())
def test_a_changed_byte_never_passes_for_data(data: st.DataObject) -> None:
    slices = [[("uno", 1), ("dos", 2)], [("tres", 3)]]
    whole = object_of(slices, [(3, "title is empty")])
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] ^= data.draw(st.integers(1, 255))
    try:
        reader = mapped.open_bytes(bytes(damaged))
        found = [reader.slice("scan_1", number).num_rows for number in range(2)]
        assert reader.rejects() == [(3, "title is empty", 1)]
        assert found == [2, 1]
    except FormatError:
        return
    # Only bytes that nothing refers to may change unseen: the stream of the empty schema.
    empty = reader.index.stages["scan_1"].empty
    start = len(whole) - sum(span.length for span in reader.index.stages["scan_1"].slices)
    assert start - empty.length <= place < start


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a mapped object"),
        (b"PK" + bytes(60), "is not a mapped object"),
        (b"CAUDALM9" + bytes(60), "has format 9, this Caudal reads 2"),
        (b"CAUDALM2" + bytes(60), "is damaged"),
    ],
)
def test_what_is_not_understood_is_said(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        mapped.open_bytes(data)


def test_the_document_shows_a_true_object() -> None:
    """docs/formats/mapped.md quotes the head and index of this very object."""
    text = (Path(__file__).parents[3] / "docs" / "formats" / "mapped.md").read_text()
    data = object_of([[("uno", 1)], []], [(3, "Title is empty")])
    length = int.from_bytes(data[8:12], "little")
    assert data[: mapped.HEAD_BYTES].hex(" ", 4) in text
    index = data[mapped.HEAD_BYTES : mapped.HEAD_BYTES + length].decode()
    assert index in text
