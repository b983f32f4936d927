"""Merge the events of a month: keep the newest version of every primary key. Pure."""

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from caudal.series.rows import PRIMARY_KEYS, SCHEMA

_ORDER = ("version", "obs_time", "internal_series_code")  # the last one decides first


def merge(parts: Sequence[pa.Table], keys: Sequence[str] = PRIMARY_KEYS) -> pa.Table:
    """Return the rows with the highest version of their key.

    They are sorted by series code, time and version.
    """
    if not parts:
        return SCHEMA.empty_table()
    table = pa.concat_tables(parts).combine_chunks()
    columns = {name: _sortable(table.column(name)) for name in {*keys, *_ORDER}}
    kept = np.lexsort([columns["version"], *(columns[key] for key in keys)])
    sorted_keys = [columns[key][kept] for key in keys]
    last = np.ones(len(kept), dtype=bool)
    last[:-1] = reduce(np.logical_or, (key[1:] != key[:-1] for key in sorted_keys))
    kept = kept[last]
    order = np.lexsort([columns[name][kept] for name in _ORDER])
    return table.take(_places(kept[order]))


def split(merged: pa.Table) -> Iterable[tuple[str, pa.Table]]:
    """Yield the rows of each series, from the result of `merge`."""
    if not merged.num_rows:
        return
    runs = pc.run_end_encode(merged.column("internal_series_code").combine_chunks())
    ends = runs.run_ends.to_pylist()
    start = 0
    for code, end in zip(runs.values.to_pylist(), ends, strict=True):
        yield code, merged.slice(start, end - start)
        start = end


def known_until(
    table: pa.Table, *, version: int | None = None, vintage: "pa.Scalar | None" = None
) -> pa.Table:
    """Return the events that were known at a version, or at the end of a day."""
    if version is not None:
        table = table.filter(pc.less_equal(table.column("version"), version))
    if vintage is not None:
        table = table.filter(pc.less_equal(table.column("vintage_date"), vintage))
    return table


def _sortable(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return numbers in the order of a column's values."""
    if pa.types.is_string(column.type):
        return _ranks(column)
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return _numbers(column.cast(pa.int64()))


def _ranks(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the rank of each text among the distinct texts, so that numbers can be sorted."""
    encoded = column.combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    order = sorted(range(len(texts)), key=lambda place: texts[place].encode())
    ranks = np.empty(len(texts), dtype=np.int64)
    ranks[order] = np.arange(len(texts))
    given: NDArray[np.int64] = ranks[np.from_dlpack(encoded.indices)]
    return given


# `to_numpy` and `pa.array` are avoided: they load pandas if it is installed (half a second).
def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.from_dlpack(column.combine_chunks()).view(np.int64)


def _places(numbers: NDArray[np.int64]) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])
