"""Conversion of result values to Python, JSON and text. One rule per type; no value is lost.

1. JSON output is valid JSON. Dates, intervals and blobs (hexadecimal) are strings. So are NaN and
   Infinity, because JSON has no numbers for them. Numbers have all their digits.
2. CSV and the screen show the same without quotes. Lists, structs and maps are shown as JSON.
3. Python values are the simplest equal object: a decimal becomes an int if it is whole, a float if
   that loses nothing, else a Decimal.

docs/formats/answers.md lists all types.
"""

import math
from collections.abc import Callable
from datetime import date, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from caudal.results.temporal import date_of, time_of, timestamp_of

if TYPE_CHECKING:
    import pyarrow as pa

_FLOAT_DIGITS = 15  # a float holds every decimal of up to this many digits
_JSON = msgspec.json.Encoder(decimal_format="number")
_WORD_BITS = 64  # the encoder takes a larger integer only as a Decimal

Convert = Callable[[Any], Any]


def python_values(column: "pa.ChunkedArray") -> list[Any]:
    """Return a column as Python values."""
    from pyarrow import types

    if not _holds(column.type, lambda kind: types.is_time(kind) or _is_nanosecond(kind)):
        try:
            values = column.to_pylist()
        except (OverflowError, ValueError):  # beyond Python's years
            pass
        else:
            convert = _converter(column.type)
            return values if convert is None else [convert(value) for value in values]
    values = column.cast(_counted(column.type)).to_pylist()
    convert = _converter(column.type, is_counted=True) or _same
    return [convert(value) for value in values]


def is_number(kind: "pa.DataType") -> bool:
    """Return whether values of this type are numbers."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _is_nanosecond(kind: "pa.DataType") -> bool:
    from pyarrow import types

    return bool(types.is_timestamp(kind)) and kind.unit == "ns"


def _holds(kind: "pa.DataType", is_meant: Callable[["pa.DataType"], bool]) -> bool:
    """Return whether `is_meant` holds for a type or a part of it."""
    parts = [kind.field(place).type for place in range(kind.num_fields)]
    return is_meant(kind) or any(_holds(part, is_meant) for part in parts)


def _counted(kind: "pa.DataType") -> "pa.DataType":
    """Return the type with integers in place of dates and times."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_date32(kind) or types.is_time32(kind):
        return pa.int32()
    if types.is_date64(kind) or types.is_time64(kind) or types.is_timestamp(kind):
        return pa.int64()
    if types.is_map(kind):
        return pa.map_(_counted(kind.key_type), _counted(kind.item_type))
    if types.is_struct(kind):
        return pa.struct([field.with_type(_counted(field.type)) for field in kind])
    if types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_counted(kind.value_type)), kind.list_size)
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_counted(kind.value_type)))
    return kind


def _converter(kind: "pa.DataType", *, is_counted: bool = False) -> Convert | None:
    """Return the conversion from Arrow's Python value to ours; None if they are the same.

    With `is_counted`, Arrow's values for dates and times are integers.
    """
    from pyarrow import types

    if is_counted and types.is_temporal(kind) and not types.is_interval(kind):
        return _moment_converter(kind)
    if types.is_decimal(kind):
        return _nullable(plain_decimal)
    if types.is_interval(kind):
        return _nullable(lambda value: interval_text(*value))

    def part(inner: "pa.DataType") -> Convert | None:
        return _converter(inner, is_counted=is_counted)

    if types.is_map(kind):
        key, item = part(kind.key_type) or _same, part(kind.item_type) or _same
        return _nullable(lambda pairs: {key(one): item(other) for one, other in pairs})
    if types.is_struct(kind):
        fields = {field.name: part(field.type) or _same for field in kind}
        return _nullable(lambda row: {name: fields[name](value) for name, value in row.items()})
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = part(kind.value_type)
        return inner and _nullable(lambda values: [inner(value) for value in values])
    return None


def _moment_converter(kind: "pa.DataType") -> Convert | None:
    from pyarrow import types

    if types.is_date32(kind):
        return _nullable(date_of)
    if types.is_time(kind):
        return _nullable(lambda ticks: time_of(ticks, kind.unit))
    if types.is_timestamp(kind):
        zoned = kind.tz is not None
        return _nullable(lambda ticks: timestamp_of(ticks, kind.unit, is_zoned=zoned))
    return None


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value


def plain_decimal(value: Decimal) -> int | float | Decimal:
    """Return the simplest number that equals a decimal."""
    if value == value.to_integral_value():
        return int(value)
    exact = Decimal(decimal_text(value))
    return float(exact) if len(exact.as_tuple().digits) <= _FLOAT_DIGITS else exact


def decimal_text(value: Decimal) -> str:
    """Return all digits of a decimal without trailing zeros."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def interval_text(months: int, days: int, nanoseconds: int) -> str:
    """Return an interval in DuckDB's form."""
    years, months = int(months / 12), int(math.fmod(months, 12))
    parts = [
        f"{count} {unit}" + ("" if abs(count) == 1 else "s")
        for count, unit in ((years, "year"), (months, "month"), (days, "day"))
        if count
    ]
    microseconds = abs(nanoseconds) // 1000
    if microseconds or not parts:
        seconds, fraction = divmod(microseconds, 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        fractional = f".{fraction:06}".rstrip("0") if fraction else ""
        parts.append(("-" if nanoseconds < 0 else "") + clock + fractional)
    return " ".join(parts)


def json_value(value: Any) -> Any:
    """Return a Python value as `json_bytes` writes it."""
    match value:
        case None | bool() | str() | Decimal():
            return value
        case int():
            return value if value.bit_length() < _WORD_BITS else Decimal(value)
        case float():
            return value if math.isfinite(value) else _float_word(value)
        case list() | tuple():
            return [json_value(item) for item in value]
        case dict():
            return {_key(key): json_value(item) for key, item in value.items()}
    return text(value)


def _key(key: Any) -> str:
    return text(key) if key is not None else "null"


def json_bytes(value: Any) -> bytes:
    """Return a value as indented, valid JSON."""
    return msgspec.json.format(_JSON.encode(json_value(value)), indent=1) + b"\n"


def json_text(value: Any, depth: int | None) -> str:
    """Return a value as JSON: on one line, or indented for a place `depth` levels deep."""
    encoded = _JSON.encode(json_value(value))
    if depth is None:
        return encoded.decode()
    return msgspec.json.format(encoded, indent=1).decode().replace("\n", "\n" + " " * depth)


def text(value: Any) -> str:
    """Return a value as text for CSV and the screen."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return repr(value) if math.isfinite(value) else _float_word(value)
        case Decimal():
            return decimal_text(value)
        case bytes():
            return value.hex().upper()
        case date() | time():
            return str(value)  # a datetime too: date, space, time
        case list() | dict():
            return _JSON.encode(json_value(value)).decode()
    return str(value)


def _float_word(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
