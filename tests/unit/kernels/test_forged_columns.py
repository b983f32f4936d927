"""Arrow columns that claim more than their buffers hold: every kernel refuses them."""

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caudal.errors import DataError
from caudal.kernels.hashing import hash_rows, key_words
from caudal.kernels.literals import items, names
from caudal.kernels.sentiment.column import score

TEXT = b"['good', 'bad']" * 4

Kernel = Callable[[pa.Array], Any]
TEXT_KERNELS: list[Kernel] = [items, names, score, lambda array: hash_rows([array])]


def forged(
    kind: pa.DataType, honest: list[int], lied: list[int], width: str, *rest: Any
) -> pa.Array:
    """An array whose offsets, views or indices change after Arrow has looked at them."""
    numbers = np.array(honest, width)
    array = pa.Array.from_buffers(
        kind, len(honest) // {"<i4": 1, "<u4": 4}[width] - (width == "<i4"),
        [None, pa.py_buffer(numbers), *rest],
    )  # fmt: skip
    numbers[:] = lied
    return array


def text(*places: int, data: bytes = TEXT) -> pa.Array:
    return forged(pa.string(), [0] * len(places), list(places), "<i4", pa.py_buffer(data))


def views(*words: int) -> pa.Array:
    return forged(pa.string_view(), [0] * len(words), list(words), "<u4", pa.py_buffer(TEXT))


def lengthened(array: pa.Array) -> pa.Array:
    """An array of 977 values that claims to hold 100,000: as it comes out of a forged stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("a", array.type)])) as writer:
        writer.write_batch(pa.record_batch([array], names=["a"]))
    told, lied = (struct.pack("<q", number) for number in (977, 100_000))
    data = sink.getvalue().to_pybytes().replace(told, lied)
    return pa.ipc.open_stream(data).read_all()["a"].chunk(0)


def lists(*places: int) -> pa.Array:
    offsets = np.zeros(len(places), np.int32)
    array = pa.ListArray.from_arrays(pa.array(offsets), NUMBERS)
    memory = np.frombuffer(array.buffers()[1], np.int32)
    ctypes.memmove(memory.ctypes.data, np.array(places, np.int32).ctypes.data, 4 * len(places))
    return array


def indices(*places: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        pa.array(places, pa.int32()), pa.array(["['a']"]), safe=False
    )


NUMBERS = pa.array(range(977), pa.int64())
WORDS = pa.array(["['good', 'bad']"] * 977)

FORGED_TEXTS = {
    "ends behind the data": text(0, 15, 1 << 20),
    "goes behind the data and comes back": text(0, 1 << 20, 15),
    "begins before the data": text(-4096, 15),
    "goes before the data and comes back": text(0, -4096, 15),
    "descends": text(30, 15, 15),
    "has too few offsets": lengthened(WORDS),
    "views behind the data": views(1 << 20, 0, 0, 0),
    "views from behind the data": views(15, 0, 0, 1 << 30),
    "views of another buffer": views(15, 0, 7, 0),
    "has too few views": lengthened(WORDS.cast(pa.string_view())),
    "names what its dictionary lacks": indices(0, 9),
    "names what lies before its dictionary": indices(0, -1),
}


@pytest.mark.parametrize("kernel", TEXT_KERNELS, ids=["items", "names", "score", "hash"])
@pytest.mark.parametrize("forged", FORGED_TEXTS.values(), ids=FORGED_TEXTS)
def test_texts_outside_of_their_data_are_refused(kernel: Kernel, forged: pa.Array) -> None:
    with pytest.raises(DataError):
        kernel(forged)


FORGED_VALUES = {
    "numbers": lengthened(NUMBERS),
    "booleans": lengthened(pa.array([True, None] * 488 + [False])),
    "decimals": lengthened(NUMBERS.cast(pa.decimal128(21, 2))),
    "fixed": lengthened(pa.array([b"12345"] * 977, pa.binary(5))),
    "list": lists(0, 1 << 20, 2),
    "list before its values": lists(-900, 2),
    "list that descends": lists(5, 2, 9),
    "list of texts": pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), text(0, -4096, 15)),
    "too few lists": lengthened(pa.array([[1]] * 977)),
    "fixed lists": lengthened(pa.array([[1, 2]] * 977, pa.list_(pa.int64(), 2))),
    "structs": lengthened(pa.array([{"a": 1}] * 977)),
    "dictionary": lengthened(pa.array(["a"] * 977).dictionary_encode()),
}


@pytest.mark.parametrize("forged", FORGED_VALUES.values(), ids=FORGED_VALUES)
def test_values_outside_of_their_buffers_are_refused(forged: pa.Array) -> None:
    with pytest.raises(DataError):
        hash_rows([forged])


def test_keys_outside_of_their_buffer_are_refused() -> None:
    with pytest.raises(DataError):
        key_words(pa.chunked_array([FORGED_VALUES["numbers"]]))


@pytest.mark.parametrize("kernel", TEXT_KERNELS[:3], ids=["items", "names", "score"])
def test_bytes_that_are_not_utf8_are_read_all_the_same(kernel: Kernel) -> None:
    for data in (b"\xe2", b"\xe2\x80", b"\xc2 ", b":\xc2", b"['\xff\\N{DIGIT ONE}']", b"\0!\0)"):
        assert len(kernel(text(0, len(data), data=data))) == 1
