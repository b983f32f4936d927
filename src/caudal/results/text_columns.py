"""Columns as text, many values at a time: the bytes of results/values.py at the speed of Arrow.

1. Arrow writes a value only where its text is certainly the one of results/values.py: integers,
   booleans, texts, days and moments within Python's years, decimals, and floats that Python writes
   without an exponent.
2. All other values are odd. Odd values are converted one by one with results/values.py. Whole
   columns are odd if their type is nested or rare.

tests/unit/results/test_text_columns.py compares every type with results/values.py, value by value.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from caudal.results.temporal import FIRST_DAY, LAST_DAY, PER_SECOND, SECONDS_PER_DAY
from caudal.results.values import is_number, json_text, python_values, text

TEXT = pa.large_string()
_LEAST_FLOAT, _MOST_FLOAT = (
    1e-4,
    1e10,
)  # both Arrow and Python write floats between without exponent
_ODD_DECIMAL = r"^-?0\.0000|E"  # Python writes smaller floats with an exponent
_ODD_IN_JSON = r'["\\\x00-\x1f]'
_QUOTED_IN_CSV = '[",\r\n]'
_NO_FRACTION = ".000000"


def is_flat(kind: pa.DataType) -> bool:
    """Return whether Arrow writes most values of this type."""
    return _is_bare(kind) or _is_text(kind) or _is_day_or_moment(kind)


def csv_fields(array: pa.Array) -> pa.Array:
    """Return the fields of a CSV file, with quotes where they are needed. Null stays null."""
    texts = _texts(array, text)
    if _is_bare(array.type):
        return texts
    quoted = pc.match_substring_regex(texts, _QUOTED_IN_CSV)
    return _with(texts, quoted, _in_quotes(pc.replace_substring(texts.filter(quoted), '"', '""')))


def json_texts(array: pa.Array, indent: int | None) -> pa.Array:
    """Return the values as JSON, null as `null`. `indent` is the depth of their lines."""

    def convert(value: Any) -> str:
        return json_text(value, indent)

    if _is_bare(array.type):
        texts = _texts(array, convert)
    elif _is_text(array.type):
        texts = _as_text(array)
        odd = pc.match_substring_regex(texts, _ODD_IN_JSON)
        texts = _with(_in_quotes(texts), odd, _converted(texts.filter(odd), convert))
    elif _is_day_or_moment(array.type):
        texts = _in_quotes(_texts(array, text))
    else:
        texts = _texts(array, convert)
    return pc.fill_null(texts, pa.scalar("null", TEXT))


def markdown_cells(array: pa.Array) -> pa.Array:
    """Return the cells of a table in Markdown. Null stays null."""
    texts = _texts(array, text)
    if _is_bare(array.type):
        return texts
    escaped = pc.replace_substring_regex(texts, r"([\\|])", r"\\\1")
    return pc.replace_substring_regex(escaped, "\r\n|\r|\n", "<br>")


def joined(*parts: pa.Array | str) -> pa.Array:
    """Return the concatenation of columns of text and constant texts, row by row. Null is empty."""
    given = [pa.scalar(part, TEXT) if isinstance(part, str) else part for part in parts]
    nothing = pa.scalar("", TEXT)
    return pc.binary_join_element_wise(
        *given, nothing, null_handling="replace", null_replacement=""
    )


def content(texts: pa.Array) -> bytes:
    """Return all texts of a column, one after the other."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return b""
    ends = pa.Array.from_buffers(pa.int64(), len(texts) + 1, [None, offsets], offset=texts.offset)
    start, end = ends[0].as_py(), ends[len(texts)].as_py()
    return bytes(data.slice(start, end - start))


def _texts(array: pa.Array, convert: Callable[[Any], str]) -> pa.Array:
    """Return the values as text, odd ones by `convert`."""
    kind = array.type
    if types.is_null(kind):
        return pa.nulls(len(array), TEXT)
    if types.is_integer(kind) or types.is_boolean(kind):
        return array.cast(TEXT)
    if _is_text(kind):
        return _as_text(array)
    if types.is_floating(kind):
        texts, odd = _floats(array.cast(pa.float64()))
    elif types.is_decimal(kind):
        texts, odd = _decimals(array)
    elif _is_day_or_moment(kind):
        texts, odd = _moments(array)
    else:
        return _converted(array, convert)
    return _with(texts, odd, _converted(array.filter(odd), convert))


def _floats(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    size = pc.abs(array)
    within = pc.and_(pc.greater_equal(size, _LEAST_FLOAT), pc.less(size, _MOST_FLOAT))
    odd = pc.invert(pc.or_(within, pc.equal(size, 0.0)))
    texts = array.cast(TEXT)
    return pc.if_else(pc.equal(pc.trunc(array), array), _around("", texts, ".0"), texts), odd


def _decimals(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    texts = array.cast(TEXT)
    if array.type.scale > 0:
        texts = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    return texts, pc.match_substring_regex(texts, _ODD_DECIMAL)


def _moments(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    kind = array.type
    if types.is_date32(kind):
        days = array.cast(pa.int32())
        odd = pc.or_(pc.less(days, FIRST_DAY), pc.greater(days, LAST_DAY))
        return _kept(array, odd).cast(TEXT), odd
    ticks, second = array.cast(_ticks_of(kind)).cast(pa.int64()), PER_SECOND[kind.unit]
    if types.is_time(kind):
        odd = pc.greater_equal(ticks, SECONDS_PER_DAY * second)
        return _without_fraction(_kept(array, odd).cast(pa.time64("us")).cast(TEXT)), odd
    day = SECONDS_PER_DAY * second
    odd = pc.or_(pc.less(ticks, FIRST_DAY * day), pc.greater_equal(ticks, (LAST_DAY + 1) * day))
    texts = _without_fraction(_kept(array, odd).cast(pa.timestamp("us")).cast(TEXT))
    return (_around("", texts, "+00:00") if kind.tz else texts), odd


def _ticks_of(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if types.is_time32(kind) else pa.int64()


def _kept(array: pa.Array, odd: pa.Array) -> pa.Array:
    """Return the array with null in place of odd values, which Arrow may be unable to cast."""
    return pc.if_else(odd, pa.scalar(None, array.type), array)


def _without_fraction(texts: pa.Array) -> pa.Array:
    whole = pc.ends_with(texts, _NO_FRACTION)
    return pc.if_else(whole, pc.utf8_slice_codeunits(texts, 0, -len(_NO_FRACTION)), texts)


def _is_text(kind: pa.DataType) -> bool:
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _as_text(array: pa.Array) -> pa.Array:
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(TEXT)


def _is_bare(kind: pa.DataType) -> bool:
    """Return whether values of this type need no quotes in CSV, nor in JSON (unless odd)."""
    return is_number(kind) or bool(types.is_boolean(kind) or types.is_null(kind))


def _is_day_or_moment(kind: pa.DataType) -> bool:
    if types.is_timestamp(kind):
        return kind.unit != "ns" and kind.tz in (None, "UTC")
    return bool(types.is_date32(kind)) or (bool(types.is_time(kind)) and kind.unit != "ns")


def _in_quotes(texts: pa.Array) -> pa.Array:
    return _around('"', texts, '"')


def _around(before: str, texts: pa.Array, after: str) -> pa.Array:
    """Return the texts with two constants around them. Null stays null."""
    constants = [pa.scalar(one, TEXT) for one in (before, after, "")]
    return pc.binary_join_element_wise(constants[0], texts, *constants[1:])


def _converted(array: pa.Array, convert: Callable[[Any], str]) -> pa.Array:
    values = python_values(pa.chunked_array([array]))
    return pa.array([None if value is None else convert(value) for value in values], TEXT)


def _with(texts: pa.Array, odd: pa.Array, replacements: pa.Array) -> pa.Array:
    """Return the texts with replacements in the places of odd ones."""
    if not len(replacements):
        return texts
    return pc.replace_with_mask(texts, pc.fill_null(odd, False), replacements)
