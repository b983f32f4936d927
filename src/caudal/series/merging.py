"""Merge the events of a month: keep the newest version of every primary key. Pure."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from caudal.series.rows import SCHEMA


def merge(parts: Sequence[pa.Table]) -> pa.Table:
    """Return the rows with the highest version of their key, sorted by series code and time."""
    if not parts:
        return SCHEMA.empty_table()
    table = pa.concat_tables(parts).combine_chunks()
    codes = _ranks(table.column("internal_series_code"))
    times = _numbers(table.column("obs_time").cast(pa.int64()))
    versions = _numbers(table.column("version"))
    order = np.lexsort((versions, times, codes))
    codes, times = codes[order], times[order]
    last = np.ones(len(order), dtype=bool)
    last[:-1] = (codes[1:] != codes[:-1]) | (times[1:] != times[:-1])
    return table.take(_places(order[last]))


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
