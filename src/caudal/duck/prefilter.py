"""Drops rows of `raw` before they are cleaned, as a `Prefilter` describes."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.kernels.hashing import KeyFilter, key_words, whole
from caudal.sql.table_needs import Flag, Prefilter

KeyFilters = Mapping[str, KeyFilter]  # by the name of the key set
Mask = NDArray[np.bool_]


class Prefiltered(NamedTuple):
    """The rows of `raw` that are left, with the flags, and the original position of each row."""

    raw: pa.Table
    places: NDArray[np.int64]


def prefilter_rows(raw: pa.Table, prefilter: Prefilter, filters: KeyFilters) -> Prefiltered:
    """Add the flags, and drop the rows that may be dropped."""
    flags = _flags(raw, prefilter, filters)
    places = np.flatnonzero(_keep(raw, prefilter, flags))
    if len(places) < raw.num_rows:
        columns = [_take(whole(column), places) for column in raw.columns]
        raw = pa.table(columns, names=raw.column_names)
    for flag, found in flags.items():
        raw = raw.append_column(flag.name, pa.array(found[places]))
    return Prefiltered(raw, places)


def _flags(raw: pa.Table, prefilter: Prefilter, filters: KeyFilters) -> dict[Flag, Mask]:
    words = {name: key_words(raw[name]) for name in {flag.column for flag in prefilter.flags}}
    flags = {flag: filters[flag.keys].may_hold(words[flag.column]) for flag in prefilter.flags}
    for flag, found in flags.items():
        found[_nulls(raw[flag.column])] = True
    return flags


def _nulls(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the positions of nulls, from the bitmap. Arrow's own way takes ten times as long."""
    array = whole(column)
    if not array.null_count:
        return np.empty(0, dtype=np.int64)
    bits = np.unpackbits(np.frombuffer(array.buffers()[0], np.uint8), bitorder="little")
    return np.flatnonzero(bits[array.offset : array.offset + len(array)] == 0)


def _keep(raw: pa.Table, prefilter: Prefilter, flags: Mapping[Flag, Mask]) -> Mask:
    keep = np.zeros(raw.num_rows, dtype=np.bool_)
    for wanted in prefilter.visible_rows:
        seen = np.ones(raw.num_rows, dtype=np.bool_)
        for flag in wanted:
            seen &= flags[flag]
        keep |= seen
    for name in prefilter.present:
        keep[_nulls(raw[name])] = True
    return keep


def _take(array: pa.Array, places: NDArray[np.int64]) -> pa.Array:
    """Return the values at some positions. Arrow's own `take` does not support text views."""
    if not pa.types.is_string_view(array.type):
        return array.take(pa.array(places))
    _, views, *texts = array.buffers()
    taken = np.frombuffer(views, dtype="2u8")[array.offset :][places]
    valid = array.is_valid().to_numpy(zero_copy_only=False)[places]
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(array.type, len(places), [bits, pa.py_buffer(taken), *texts])
