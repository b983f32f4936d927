"""The partitioning hash agrees with `docs/formats/hash.md`, and spreads rows evenly."""

import datetime
import json
import math
import re
import struct
import uuid
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caudal import errors
from caudal.kernels.hashing import hash_rows, partition_of
from caudal.kernels.hashing.values import hash_column

DOCUMENT = Path(__file__).parents[3] / "docs" / "formats" / "hash.md"

P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MASK = 2**64 - 1


def rotl(word: int, bits: int) -> int:
    word &= MASK
    return (word << bits | word >> (64 - bits)) & MASK


def lane_round(lane: int, word: int) -> int:
    return rotl(lane + word * P2, 31) * P1 & MASK


def xxh64(data: bytes, seed: int) -> int:
    """XXH64 as the document writes it."""
    stripes, left = divmod(len(data), 32)
    tail = data[len(data) - left :]
    h = seed + P5
    if stripes:
        lanes = [seed + P1 + P2, seed + P2, seed, seed - P1]
        for words in struct.iter_unpack("<4Q", data[: stripes * 32]):
            lanes = [lane_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
        h = sum(rotl(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            h = (h & MASK ^ lane_round(0, lane)) * P1 + P4
    h = h + len(data) & MASK
    while len(tail) >= 8:
        h = rotl(h ^ lane_round(0, int.from_bytes(tail[:8], "little")), 27) * P1 + P4 & MASK
        tail = tail[8:]
    if len(tail) >= 4:
        h = rotl(h ^ int.from_bytes(tail[:4], "little") * P1, 23) * P2 + P3 & MASK
        tail = tail[4:]
    for byte in tail:
        h = rotl(h ^ byte * P5, 11) * P1 & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


def encoding(kind: pa.DataType, value: Any) -> tuple[int, bytes]:
    """The kind and the bytes of a value, as the document says; times are integers in their unit."""
    types = pa.types
    if value is None:
        return 0, b""
    if types.is_dictionary(kind):
        return encoding(kind.value_type, value)
    if types.is_boolean(kind):
        return 1, word(int(value))
    if types.is_integer(kind) or types.is_decimal(kind):
        return 2, number(Decimal(value))
    if types.is_floating(kind):
        value = math.nan if math.isnan(value) else value + 0.0
        return 3, bytes.fromhex("000000000000f87f") if value != value else struct.pack("<d", value)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return 4, value.encode()
    if types.is_date32(kind):
        return 6, word(value)
    if types.is_time(kind):
        return 7, word(microseconds(value, kind.unit))
    if types.is_timestamp(kind):
        return 8, word(microseconds(value, kind.unit))
    if types.is_duration(kind):
        return 9, word(microseconds(value, kind.unit))
    if types.is_interval(kind):
        months, days, nanoseconds = value
        return 9, word((months * 30 + days) * 24 * 3600 * 10**6 + nanoseconds // 1000)
    if types.is_struct(kind):
        return 11, b"".join(word(reference(field.type, value[field.name])) for field in kind)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return 10, b"".join(word(reference(kind.value_type, part)) for part in value)
    return 5, value


def reference(kind: pa.DataType, value: Any) -> int:
    seed, data = encoding(kind, value)
    return xxh64(data, seed)


def reference_row(kinds: Sequence[pa.DataType], values: Sequence[Any]) -> int:
    hashes = [reference(kind, value) for kind, value in zip(kinds, values, strict=True)]
    return xxh64(b"".join(map(word, hashes)), 11)


def word(number: int) -> bytes:
    return (number & MASK).to_bytes(8, "little")


def number(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits)))
    while exponent < 0 and unscaled % 10 == 0:
        unscaled //= 10
        exponent += 1
    signed: int = (-unscaled if sign else unscaled) * 10 ** max(exponent, 0)
    return signed.to_bytes(16, "little", signed=True) + bytes([max(-exponent, 0)])


def microseconds(count: int, unit: str) -> int:
    return {"s": count * 10**6, "ms": count * 1000, "us": count, "ns": count // 1000}[unit]


TYPES: dict[str, pa.DataType] = {
    str(kind): kind
    for kind in [
        *(pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.decimal32(9, 2), pa.decimal64(18, 4), pa.decimal128(38, 0), pa.decimal128(38, 10)),
        *(pa.float16(), pa.float32(), pa.float64()),
        *(pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())),
        *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(4)),
        *(pa.date32(), pa.time32("s"), pa.time64("us"), pa.time64("ns")),
        *(pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")),
        *(pa.timestamp("us", "America/Argentina/Buenos_Aires"), pa.duration("ms")),
        *(pa.month_day_nano_interval(), pa.list_(pa.string()), pa.large_list(pa.int32())),
        *(pa.list_(pa.list_(pa.int32())), pa.list_(pa.int16(), 2)),
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
    ]
}


def from_json(kind: pa.DataType, value: Any) -> pa.Array:
    """An array of the one value that the document writes in JSON."""
    if value is not None:
        if pa.types.is_decimal(kind):
            value = Decimal(value)
        elif pa.types.is_time(kind):
            value = datetime.time.fromisoformat(value)
        elif pa.types.is_date(kind):
            value = datetime.date.fromisoformat(value)
        elif pa.types.is_timestamp(kind):
            value = datetime.datetime.fromisoformat(value)
        elif pa.types.is_interval(kind):
            value = pa.MonthDayNano(value)
        elif "binary" in str(kind):
            value = bytes.fromhex(value)
    return pa.array([value], kind)


def table_after(heading: str) -> list[list[str]]:
    """The cells of the table under a heading of the document, without their code marks."""
    section = DOCUMENT.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return [[cell.strip("` ") for cell in row] for row in rows[2:]]


@pytest.mark.parametrize(
    ("kind", "value", "seed", "data", "expected"), table_after("Test vectors: values")
)
def test_value_vectors(kind: str, value: str, seed: str, data: str, expected: str) -> None:
    assert xxh64(bytes.fromhex(data), int(seed)) == int(expected, 16)
    assert hash_column(from_json(TYPES[kind], json.loads(value)))[0] == int(expected, 16)


@pytest.mark.parametrize(
    ("kinds", "values", "expected", "places"), table_after("Test vectors: rows")
)
def test_row_vectors(kinds: str, values: str, expected: str, places: str) -> None:
    columns = [
        from_json(TYPES[kind], value)
        for kind, value in zip(kinds.split("; "), json.loads(values), strict=True)
    ]
    assert hash_rows(columns)[0] == int(expected, 16)
    found = [partition_of(columns, partitions)[0] for partitions in (2, 16, 1000)]
    assert found == [int(place) for place in places.split(", ")]


def test_the_document_has_enough_vectors() -> None:
    values, rows = table_after("Test vectors: values"), table_after("Test vectors: rows")
    assert len(values) >= 40
    assert len(rows) >= 8
    assert {int(row[2]) for row in values} == set(range(12))


def test_published_xxh64_values() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    sentence = re.search(r"With seed 0, no bytes give `(\w+)`, (.*)\.", text)
    assert sentence is not None
    assert xxh64(b"", 0) == int(sentence[1], 16)
    assert [
        xxh64(data.encode(), 0) for data, _ in re.findall(r"`([^`]+)` gives `(\w+)`", sentence[2])
    ] == [int(hash_, 16) for _, hash_ in re.findall(r"`([^`]+)` gives `(\w+)`", sentence[2])]


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, in the form that both Arrow and the reference take."""
    types = pa.types
    if types.is_boolean(kind):
        return st.booleans()
    if types.is_unsigned_integer(kind):
        return st.integers(0, 2**kind.bit_width - 1)
    if types.is_integer(kind):
        return st.integers(-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
    if types.is_decimal(kind):
        limit = 10**kind.precision - 1
        trailing = st.integers(0, kind.precision).map(lambda zeros: 10**zeros)
        unscaled = st.integers(-limit, limit) | trailing.filter(lambda n: n <= limit)
        return unscaled.map(lambda n: scaled(n, kind.scale))
    if types.is_floating(kind):
        return st.floats(width=kind.bit_width) | st.sampled_from([0.0, -0.0, math.nan, math.inf])
    if types.is_dictionary(kind):
        return values_of(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=100)
    if types.is_fixed_size_binary(kind):
        return st.binary(min_size=kind.byte_width, max_size=kind.byte_width)
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return st.binary(max_size=100)
    if types.is_date32(kind):
        return st.integers(-(2**31), 2**31 - 1)
    if types.is_time(kind):
        return st.integers(0, 86_399)
    if types.is_timestamp(kind) or types.is_duration(kind):
        return st.integers(-(2**63), 2**63 - 1)
    if types.is_interval(kind):
        small = st.integers(-(2**31), 2**31 - 1)
        return st.tuples(small, small, st.integers(-(2**63), 2**63 - 1)).map(pa.MonthDayNano)
    if types.is_struct(kind):
        return st.fixed_dictionaries({f.name: st.none() | values_of(f.type) for f in kind})
    if types.is_fixed_size_list(kind):
        elements = st.none() | values_of(kind.value_type)
        return st.lists(elements, min_size=kind.list_size, max_size=kind.list_size)
    if types.is_nested(kind):
        return st.lists(st.none() | values_of(kind.value_type), max_size=5)
    return st.none()


def scaled(unscaled: int, scale: int) -> Decimal:
    """An exact decimal, of any number of digits."""
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES.keys())
def test_every_type_agrees_with_the_reference(kind: pa.DataType) -> None:
    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.none() | values_of(kind), max_size=10), st.integers(0, 3))
    def agrees(values: list[Any], start: int) -> None:
        array = pa.array(values, kind)
        expected = [reference(kind, value) for value in values]
        assert hash_column(array).tolist() == expected
        assert hash_column(array[start:]).tolist() == expected[start:]
        chunks = pa.chunked_array([array[start:], array[:start]])
        assert hash_column(chunks).tolist() == expected[start:] + expected[:start]

    agrees()


@settings(deadline=None)
@given(st.data(), st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=4))
def test_rows_agree_with_the_reference(data: st.DataObject, names: list[str]) -> None:
    kinds = [TYPES[name] for name in names]
    rows = data.draw(st.lists(st.tuples(*(st.none() | values_of(kind) for kind in kinds))))
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    hashes = [reference_row(kinds, row) for row in rows]
    assert hash_rows(columns).tolist() == hashes
    assert partition_of(columns, 7).tolist() == [(h >> 32) * 7 >> 32 for h in hashes]


@pytest.mark.parametrize("value", [0, 1, 100, 127])
def test_integers_and_decimals_of_equal_value_hash_equal(value: int) -> None:
    exact = [k for k in TYPES.values() if pa.types.is_integer(k) or pa.types.is_decimal(k)]
    assert len({int(hash_column(pa.array([Decimal(value)]).cast(kind))[0]) for kind in exact}) == 1


def test_zeros_and_nans_hash_equal() -> None:
    strange = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64)
    assert len(set(hash_column(pa.array(strange.view(np.float64))).tolist())) == 1
    assert len(set(hash_column(pa.array([0.0, -0.0], pa.float32())).tolist())) == 1


def test_equal_instants_and_intervals_hash_equal() -> None:
    units = [pa.array([scale], pa.timestamp(unit)) for unit, scale in [("s", 1), ("ms", 1000)]]
    zoned = pa.array([10**6], pa.timestamp("us", "Asia/Tokyo"))
    assert len({int(hash_column(array)[0]) for array in [*units, zoned]}) == 1
    spans = [(1, 0, 0), (0, 30, 0), (0, 29, 86_400 * 10**9)]
    intervals = pa.array([pa.MonthDayNano(span) for span in spans])
    assert len(set(hash_column(intervals).tolist())) == 1


def test_shape_and_order_count() -> None:
    nested = pa.array([[["a"], ["b"]], [["a", "b"]], [["b"], ["a"]], [["a"], ["b"], []], [], None])
    assert len(set(hash_column(nested).tolist())) == 6
    ones, twos = pa.array([1]), pa.array([2])
    assert hash_rows([ones, twos])[0] != hash_rows([twos, ones])[0]
    assert hash_rows([ones])[0] != hash_rows([ones, ones])[0]


def test_uuids_hash_as_their_bytes() -> None:
    key = uuid.UUID("12345678-1234-5678-1234-567812345678")
    uuids = pa.array([key.bytes, None], pa.uuid())
    assert hash_column(uuids).tolist() == hash_column(pa.array([key.bytes, None])).tolist()


def test_empty_columns() -> None:
    for kind in TYPES.values():
        assert hash_rows([pa.array([], kind)]).tolist() == []
        assert partition_of([pa.chunked_array([], kind)], 4).tolist() == []


@pytest.mark.parametrize(
    "kind", [pa.map_(pa.string(), pa.int32()), pa.decimal256(50, 2), pa.decimal128(5, -2)]
)
def test_unsupported_types_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(errors.UsageError, match=re.escape(str(kind))):
        hash_rows([pa.nulls(1, kind)])


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(errors.UsageError, match="at least one column"):
        hash_rows([])
    with pytest.raises(errors.UsageError, match="equal length"):
        hash_rows([pa.array([1]), pa.array([1, 2])])
    for partitions in (0, -1, 2**31):
        with pytest.raises(errors.UsageError, match="partitions are impossible"):
            partition_of([pa.array([1])], partitions)


SPREAD = {
    "sequential": pa.array(np.arange(50_000)),
    "strided": pa.array(np.arange(50_000) * 4096),
    "floats": pa.array(np.arange(50_000) / 4),
    "similar texts": pa.array([f"customer-{i:08}" for i in range(50_000)]),
    "dates": pa.array(np.arange(50_000, dtype=np.int32), pa.date32()),
}


@pytest.mark.parametrize("keys", SPREAD.values(), ids=SPREAD.keys())
def test_partitions_are_even(keys: pa.Array) -> None:
    """Chi-square within five standard deviations of its mean, for every partition count."""
    for partitions in range(2, 65):
        counts = np.bincount(partition_of([keys], partitions), minlength=partitions)
        assert len(counts) == partitions
        even = len(keys) / partitions
        chi_square = float(((counts - even) ** 2 / even).sum())
        freedom = partitions - 1
        assert chi_square < freedom + 5 * math.sqrt(2 * freedom)


@pytest.mark.parametrize("bit", range(0, 64, 3))
def test_each_input_bit_changes_half_of_the_hash(bit: int) -> None:
    keys = np.arange(2_000, dtype=np.uint64)
    flipped = keys ^ np.uint64(1 << bit)
    changed = hash_rows([pa.array(keys)]) ^ hash_rows([pa.array(flipped)])
    assert 31.5 < np.bitwise_count(changed).mean() < 32.5
