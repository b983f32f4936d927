"""Parquet files of a dataset: rows to bytes, and the statistics that a Delta log has of a file.

Statistics are bounds that readers rely on to skip files, so every doubt leaves one out: floats with
NaN, long texts (only their lower bound is kept, cut), nested columns.

Columns of long texts have neither a dictionary nor bounds inside of the file: hardly two of them
are equal, nobody asks for a range of them, and both take a fifth of the time to write a file.

Columns of floats have no bounds inside of the file either. pyarrow leaves NaN out of them, but for
DuckDB NaN is the greatest float, so it would skip rows that a question asks for. Files of older
releases have such bounds: `has_untrue_bounds` says which of them must not be skipped by.
"""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from caudal.datasets.documents import StoredFile
from caudal.decoding import decode_json
from caudal.files.text_views import mean_bytes, outermost_texts
from caudal.formats.digest import digest

ROW_GROUP = 122_880  # rows: DuckDB reads groups of this size best
_PAGE_BYTES = 1 << 16  # a page that fits into a processor's cache is compressed faster
_LONG_TEXTS = 100  # bytes on average
_LONGEST_TEXT = 32  # characters of a bound
_FLOATS = re.compile(r"\b(FLOAT|DOUBLE)\b")  # in DuckDB's name of a type, nested ones too
_NUMBERS = msgspec.json.Encoder(decimal_format="number")


class _FileStats(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of a file's statistics."""

    num_records: int
    max_values: dict[str, Any]
    null_count: dict[str, int]


def stored_file(path: str, rows: pa.Table) -> tuple[StoredFile, bytes]:
    """Return a file of these rows: its bytes, and what a version says of it."""
    import pyarrow.parquet as pq

    plain = pa.table([_plain(column) for column in rows.columns], names=rows.column_names)
    written = io.BytesIO()
    short = _short_columns(plain)
    pq.write_table(
        plain,
        written,
        row_group_size=ROW_GROUP,
        data_page_size=_PAGE_BYTES,
        use_dictionary=[path for path, _ in short],
        write_statistics=[path for path, kind in short if not pa.types.is_floating(kind)],
        compression="snappy",  # zstd takes half the space, and a third longer to read
        store_schema=False,
        store_decimal_as_integer=True,
        coerce_timestamps="us",
    )
    data = written.getvalue()
    return StoredFile(path, rows.num_rows, len(data), digest(data), file_stats(plain)), data


def file_stats(rows: pa.Table) -> str:
    """Return the statistics of these rows, as Delta writes them."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if pa.types.is_nested(column.type):
            continue
        nulls[name] = column.null_count
        least, most = _bounds(column)
        if least is not None:
            low[name] = least
        if most is not None:
            high[name] = most
    stats = {"numRecords": rows.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    return _NUMBERS.encode(stats).decode()


def read_rows(parts: Iterable[bytes], columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of Parquet files, one behind the other."""
    import pyarrow.parquet as pq

    tables = [pq.read_table(io.BytesIO(part), columns=columns) for part in parts]
    return pa.concat_tables(tables)


def may_have_nan(stats: str, columns: Mapping[str, str]) -> bool:
    """Return whether a file may have NaN, by its statistics and the types of its columns.

    Statistics have bounds of a column of floats only if all are finite (`_float_bounds`).
    """
    floats = {name: kind for name, kind in columns.items() if _FLOATS.search(kind)}
    if not floats:
        return False
    try:
        found = decode_json(stats, _FileStats)
    except msgspec.MsgspecError:  # files of the first releases have none
        return True
    return any(
        name not in found.max_values and found.null_count.get(name) != found.num_records
        for name in floats
    )


def has_untrue_bounds(path: Path) -> bool:
    """Return whether a Parquet file has bounds of floats, which say nothing about NaN."""
    import pyarrow.parquet as pq

    found = pq.read_metadata(path)
    groups = (found.row_group(number) for number in range(found.num_row_groups))
    columns = (group.column(place) for group in groups for place in range(group.num_columns))
    return any(
        column.physical_type in ("FLOAT", "DOUBLE") and column.is_stats_set for column in columns
    )


def _short_columns(rows: pa.Table) -> list[tuple[str, pa.DataType]]:
    """Return the columns that Parquet has for these rows, without those of long texts."""
    return [
        one
        for name, column in zip(rows.column_names, rows.columns, strict=True)
        if not _is_text(column.type) or mean_bytes(column) < _LONG_TEXTS
        for one in _paths(name, column.type)
    ]


def _paths(name: str, kind: pa.DataType) -> list[tuple[str, pa.DataType]]:
    """Return what Parquet calls the columns that hold a column's values, with their types."""
    if pa.types.is_map(kind):
        parts = [("key_value.key", kind.key_type), ("key_value.value", kind.item_type)]
    elif pa.types.is_list(kind):
        parts = [("list.element", kind.value_type)]
    elif pa.types.is_struct(kind):
        parts = [(field.name, field.type) for field in kind]
    else:
        return [(name, kind)]
    return [one for part, inner in parts for one in _paths(f"{name}.{part}", inner)]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_string_view(kind))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in a type that Parquet has without Arrow's own schema."""
    if pa.types.is_binary_view(column.type):
        return column.cast(pa.binary())
    return column


def _is_view(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_string_view(column.type))


def _ends(column: pa.ChunkedArray) -> tuple[pa.Scalar, pa.Scalar]:
    import pyarrow.compute as pc  # a tenth of a second, which questions need not wait for

    found = pc.min_max(outermost_texts(column) if _is_view(column) else column)
    return found["min"], found["max"]


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any]:
    kind, types = column.type, pa.types
    if len(column) == column.null_count:
        return None, None
    if types.is_floating(kind):
        return _float_bounds(column)
    if _is_text(kind):
        return _text_bounds(column)
    if types.is_timestamp(kind):
        return _moment_bounds(column)
    if types.is_integer(kind) or types.is_decimal(kind):
        least, most = _ends(column)
        return least.as_py(), most.as_py()
    if types.is_date(kind):
        return _date_bounds(column)
    return None, None


def _float_bounds(column: pa.ChunkedArray) -> tuple[float | None, float | None]:
    import pyarrow.compute as pc

    if not pc.all(pc.is_finite(column)).as_py():
        return None, None
    least, most = _ends(column)
    # -0.0 and 0.0 are equal, and a reader may compare their bits.
    return least.as_py() or -0.0, most.as_py() or 0.0


def _text_bounds(column: pa.ChunkedArray) -> tuple[str, str | None]:
    least, most = (end.as_py() for end in _ends(column))
    return least[:_LONGEST_TEXT], most if len(most) <= _LONGEST_TEXT else None


def _moment_bounds(column: pa.ChunkedArray) -> tuple[str | None, str | None]:
    """Return bounds in milliseconds, the precision of Delta's statistics."""
    least, most = _ends(column.cast(pa.int64()))
    zone = "" if column.type.tz is None else "Z"
    return _moment(least.as_py() // 1000, zone), _moment(-(-most.as_py() // 1000), zone)


def _moment(milliseconds: int, zone: str) -> str | None:
    try:
        moment = pa.scalar(milliseconds, pa.timestamp("ms")).as_py()
    except (OverflowError, ValueError):  # beyond the years that Python knows
        return None
    return f"{moment.isoformat(timespec='milliseconds')}{zone}"


def _date_bounds(column: pa.ChunkedArray) -> tuple[str | None, str | None]:
    least, most = _ends(column)
    try:
        return least.as_py().isoformat(), most.as_py().isoformat()
    except (OverflowError, ValueError):
        return None, None
