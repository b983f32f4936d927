"""The raw records of rows that a rejects report names: beside its rows, in the index of the result.

The columns of the report stay as they are (`outputs.REPORT`), because readers compare them. Only
rows that become JSON get the records. An index stays far below what the oldest client accepts as
the head of a result, 1 MiB.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from caudal.formats.outputs import REPORT, PlaceRecord

MOST_BYTES = 256 << 10  # of all records of a report, as JSON


def bounded(records: Iterable[PlaceRecord]) -> tuple[PlaceRecord, ...]:
    """Return as many records as an index may hold: first places of all reasons before others."""
    kept: list[PlaceRecord] = []
    left = MOST_BYTES
    for one in sorted(records, key=lambda one: (one.place, one.row)):
        size = len(msgspec.json.encode(one)) + 1
        if size <= left:
            kept.append(one)
            left -= size
    return tuple(kept)


def with_records(
    parts: Iterable[pa.Table], records: Sequence[PlaceRecord], begin: int = 0
) -> Iterator[pa.Table]:
    """Yield the rows of a report from row `begin` on; their places have a `record`, null if it is
    not known. Rows with other columns than those of a report stay as they are."""
    for part in parts:
        yield _with_records(part, records, begin) if part.schema == REPORT else part
        begin += part.num_rows


def _with_records(part: pa.Table, records: Sequence[PlaceRecord], begin: int) -> pa.Table:
    lists = part.column("first").combine_chunks().fill_null([])
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    offsets = np.append(0, np.cumsum(lengths, dtype=np.int64))
    texts: list[str | None] = [None] * int(offsets[-1])
    for one in records:
        row = one.row - begin
        if 0 <= row < part.num_rows and one.place < lengths[row]:
            texts[int(offsets[row]) + one.place] = one.record
    file, line = lists.flatten().flatten()
    names = ["file", "line", "record"]
    places = pa.StructArray.from_arrays([file, line, pa.array(texts, pa.string())], names)
    told = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), places)
    return part.set_column(part.schema.get_field_index("first"), "first", told)
