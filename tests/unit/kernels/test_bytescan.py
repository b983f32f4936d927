"""The byte scanners say what `bytes.find` says, wherever a word of eight bytes begins or ends."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from caudal.kernels.bytescan import copy_bytes, find_byte, find_either, holds_byte

# Neighbours of the bytes looked for, and the values whose borrow could mark a wrong lane.
BYTES = st.sampled_from([0x00, 0x01, 0x09, 0x0A, 0x0B, 0x2C, 0x2D, 0x7F, 0x80, 0x81, 0xFE, 0xFF])
BUFFERS = st.one_of(st.binary(max_size=40), st.lists(BYTES, max_size=40).map(bytes))


def array(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)


def first(data: bytes, byte: int, start: int, end: int) -> int:
    found = data.find(bytes([byte]), start, end)
    return end if found < 0 else found


@st.composite
def spans(draw: st.DrawFn) -> tuple[bytes, int, int]:
    data = draw(BUFFERS)
    end = draw(st.integers(0, len(data)))
    return data, draw(st.integers(0, end)), end


@settings(deadline=None, max_examples=300)
@given(spans(), BYTES)
def test_find_byte_is_bytes_find(span: tuple[bytes, int, int], byte: int) -> None:
    data, start, end = span
    assert find_byte(array(data), start, end, np.uint8(byte)) == first(data, byte, start, end)


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 140), BUFFERS, BYTES)
def test_holds_byte_looks_at_every_byte(before: int, data: bytes, byte: int) -> None:
    data = b"-" * before + data
    assert holds_byte(array(data), np.uint8(byte)) == (bytes([byte]) in data)


@settings(deadline=None, max_examples=300)
@given(spans(), BYTES, BYTES)
def test_find_either_is_the_nearer_of_two_finds(
    span: tuple[bytes, int, int], one: int, other: int
) -> None:
    data, start, end = span
    expected = min(first(data, one, start, end), first(data, other, start, end))
    assert find_either(array(data), start, end, np.uint8(one), np.uint8(other)) == expected


@settings(deadline=None, max_examples=300)
@given(spans(), st.integers(0, 9))
def test_copy_bytes_writes_the_span_and_at_most_seven_bytes_more(
    span: tuple[bytes, int, int], at: int
) -> None:
    data, start, end = span
    target = np.full(at + end - start + 8, 0x55, dtype=np.uint8)
    copy_bytes(array(data), start, end, target, at)
    assert target[:at].tobytes() == b"\x55" * at
    assert target[at : at + end - start].tobytes() == data[start:end]
    assert target[-1] == 0x55
