"""Arrow streams that were forged, or unpack to more than they may: refused before a row is seen."""

import struct
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from caudal.duck.steps import stored_piece
from caudal.errors import DataError, FormatError
from caudal.files.cleaning import Wanted
from caudal.files.pieces import TextRows
from caudal.formats import batch, mapped, outputs, streams

ROWS = 977  # a number that stands nowhere else in a stream


def stream_of(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def changed(data: bytes, told: Sequence[int], lied: Sequence[int], width: str = "i") -> bytes:
    before, after = (struct.pack(f"<{len(one)}{width}", *one) for one in (told, lied))
    assert before in data
    return data.replace(before, after)


def sent(data: bytes, columns: tuple[str, ...] = ("a",)) -> TextRows:
    """What a worker reads of a client's batch of typed rows."""
    whole = batch.encode(
        table="t", number=0, file="t.parquet", columns=columns, first_line=1, offset=0, newlines=0,
        data=data, records="arrow",
    )  # fmt: skip
    index, records = batch.view(whole, "batch 0 of t")
    return stored_piece(index, records, Wanted("t", columns)).read()


WORDS = pa.table({"a": ["some", "few", "words"]})
LISTS = pa.table({"a": [[1, 2], [3, 4, 5], [6]]})
VIEWS = pa.table({"a": pa.array(["much longer than twelve"], pa.string_view())})
NAMED = pa.table({"a": pa.array(["x", "y", "x"]).dictionary_encode()})
SECRET = 1 << 20

FORGED = {
    "offsets behind the data": changed(stream_of(WORDS), [0, 4, 7, 12], [0, 4, 7, SECRET]),
    "offsets there and back": changed(stream_of(WORDS), [0, 4, 7, 12], [0, 4, SECRET, 12]),
    "offsets before the data": changed(stream_of(WORDS), [0, 4, 7, 12], [0, -SECRET, 7, 12]),
    "views behind the data": changed(stream_of(VIEWS), [23], [SECRET]),
    "indices without a value": changed(stream_of(NAMED), [0, 1, 0], [0, 7, 0]),
    "indices before the values": changed(stream_of(NAMED), [0, 1, 0], [0, -7, 0]),
    "texts that are no UTF-8": stream_of(WORDS).replace(b"somefew", b"so\xffefew"),
    "more rows than values": changed(
        stream_of(pa.table({"a": list(range(ROWS))})), [ROWS], [100_000], "q"
    ),
}
DEEP = {
    "lists behind their values": changed(stream_of(LISTS), [0, 2, 5, 6], [0, 2, SECRET, 6]),
    "lists before their values": changed(stream_of(LISTS), [0, 2, 5, 6], [0, -9, 5, 6]),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_forged_stream_of_a_client_shows_nothing(forged: bytes) -> None:
    with pytest.raises(DataError, match=r"t\.parquet: batch 0 of t is damaged"):
        sent(forged)


@pytest.mark.parametrize("forged", [*FORGED.values(), *DEEP.values()], ids=[*FORGED, *DEEP])
def test_a_forged_stream_of_a_stored_object_shows_nothing(forged: bytes) -> None:
    with pytest.raises(FormatError, match="k is damaged"):
        streams.read_rows(forged, "k")
    with pytest.raises(FormatError):
        mapped.read_rows(forged)


BOMBS = {
    "nulls": pa.table({"a": pa.nulls(1_000_000_000)}),
    "nulls in a thousand columns": pa.table({str(n): pa.nulls(1 << 20) for n in range(999)}),
    "one text named often": pa.table(
        {"a": pa.DictionaryArray.from_arrays(np.zeros(100_000, np.int8), ["x" * 100_000])}
    ),
    "one text viewed often": pa.table(
        {
            "a": pa.Array.from_buffers(
                pa.string_view(),
                100_000,
                [
                    None,
                    pa.py_buffer(struct.pack("<IIII", 100_000, 0x78787878, 0, 0) * 100_000),
                    pa.py_buffer(b"x" * 100_000),
                ],
            )
        }
    ),
}


@pytest.mark.parametrize("table", BOMBS.values(), ids=BOMBS)
def test_a_few_bytes_do_not_become_all_memory(table: pa.Table) -> None:
    with pytest.raises(DataError, match=r"are taken|send fewer rows at once"):
        sent(stream_of(table), tuple(table.column_names))


def test_compressed_buffers_of_a_client_are_refused() -> None:
    for codec in ("zstd", "lz4"):
        with pytest.raises(DataError, match="compress the batch, not its stream"):
            sent(stream_of(pa.table({"a": ["x" * 1000] * 1000}), codec))


def test_what_a_stream_unpacks_to_is_known_before_it_is_unpacked() -> None:
    data = stream_of(pa.table({"a": ["x" * 1000] * 10_000}), "zstd")
    assert len(data) < 50_000
    small = streams.Terms(bytes=1 << 20, rows=1 << 20, nested=True, compressed=True)
    with pytest.raises(FormatError, match=r"k unpacks to 100400.. bytes: at most 1048576"):
        streams.read_rows(data, "k", small)
    assert streams.read_rows(data, "k").num_rows == 10_000


@pytest.mark.parametrize("table", [LISTS, pa.table({"a": [{"b": 1}]})])
def test_nested_columns_of_a_client_are_refused(table: pa.Table) -> None:
    with pytest.raises(DataError, match="which is not taken here"):
        sent(stream_of(table))


def test_a_stream_without_the_columns_that_its_batch_names_is_refused() -> None:
    with pytest.raises(DataError, match="no column 'b'"):
        sent(stream_of(WORDS), ("b",))


def test_typed_columns_come_as_texts() -> None:
    table = pa.table({"a": [1, None], "b": ["", "x"], "c": NAMED["a"][:2], "d": pa.nulls(2)})
    found = sent(stream_of(table), ("a", "b", "c", "d")).table
    assert found.to_pydict() == {
        "a": ["1", None], "b": [None, "x"], "c": ["x", "y"], "d": [None, None],
    }  # fmt: skip


@pytest.mark.parametrize("lossless", [True, False])
def test_every_type_of_duckdb_passes(lossless: bool) -> None:
    """With their extreme values, of which Arrow's own full check refuses some."""
    config: dict[str, Any] = {"arrow_lossless_conversion": lossless}
    with duckdb.connect(config=config) as connection:
        table = connection.sql("SELECT * FROM test_all_types()").to_arrow_table()
    data = outputs.encode_result(outputs.Whose("j", "r", "q"), "", table)
    assert outputs.decode_result(data, "k")[1].schema == table.schema


def test_rows_that_an_index_does_not_name_are_refused() -> None:
    with pytest.raises(FormatError, match="k claims 3 rows: at most 2 are taken"):
        streams.read_rows(stream_of(WORDS), "k", rows=2)
    with pytest.raises(FormatError, match="it has 3 rows instead of 4"):
        streams.read_rows(stream_of(WORDS), "k", rows=4)


def test_views_of_nulls_are_checked_too() -> None:
    """Arrow's full check leaves them out, and yet its casts read them."""
    words = np.zeros((2, 4), "<u4")
    words[0] = 23, 0x6863756D, 0, 0
    text = pa.py_buffer(b"much longer than twelve")
    bits = pa.py_buffer(b"\x01")
    array = pa.Array.from_buffers(pa.string_view(), 2, [bits, pa.py_buffer(words), text])
    assert sent(stream_of(pa.table({"a": array}))).table.num_rows == 2
    for lied in ((SECRET, 0, 0, 0), (23, 0, 9, 0), (23, 0, 0, 1 << 31), ((1 << 32) - 1, 0, 0, 0)):
        data = changed(stream_of(pa.table({"a": array})), words.ravel().tolist(),
                       [*words[0].tolist(), *lied], "I")  # fmt: skip
        with pytest.raises(DataError, match="a view lies outside of its data"):
            sent(data)


def test_a_wrong_number_of_nulls_is_refused() -> None:
    """Code that believes it makes too little room."""
    data = stream_of(pa.table({"a": [None] * 11 + [1] * (ROWS - 11)}))
    with pytest.raises(FormatError, match="the number of nulls"):
        streams.read_rows(changed(data, [ROWS, 11], [ROWS, 10], "q"), "k")


def test_texts_that_begin_inside_a_character_are_refused() -> None:
    data = stream_of(pa.table({"a": ["é", "ab"]}))
    assert streams.read_rows(data, "k").num_rows == 2
    with pytest.raises(FormatError, match="UTF"):
        streams.read_rows(changed(data, [0, 2, 4], [0, 1, 4]), "k")
