"""Text columns: pools of strings, and the few ways to combine them.

A pool is an Arrow array of strings that is made once. A column is an Arrow array with one string
per row, made by taking from pools and joining. Arrow's kernels do all the work on whole chunks, so
no Python code runs per row. Arrays are made from buffers, because `pa.array`, `pa.scalar` and
`to_numpy` import pandas if it is installed, which takes longer than a small run.
"""

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from caudal.generate.dice import Ints, Mask


def pool(strings: Iterable[str]) -> pa.Array:
    """Return an array of strings to take from."""
    encoded = [string.encode() for string in strings]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return _strings(ends, pa.py_buffer(b"".join(encoded)))


def take(strings: pa.Array, index: Ints) -> pa.Array:
    """Return the strings at these positions of a pool."""
    return strings.take(integers(index))


def digits(numbers: Ints) -> pa.Array:
    """Return integers as decimal text."""
    return integers(numbers).cast(pa.string())


def concat(*parts: pa.Array | str) -> pa.Array:
    """Join the parts row by row. A plain string is used in every row."""
    return pc.binary_join_element_wise(*map(_scalar, parts), constant(""))


def either(condition: Mask, yes: pa.Array | str, no: pa.Array | str) -> pa.Array:
    """Choose one of two values row by row."""
    return pc.if_else(booleans(condition), _scalar(yes), _scalar(no))


def blank(column: pa.Array, where: Mask) -> pa.Array:
    """Return the column with these rows emptied."""
    return either(where, "", column)


def weave(strings: pa.Array, pieces: Ints, ends: Ints) -> pa.Array:
    """Return one string per row. Row i joins pieces[ends[i-1]:ends[i]].

    Taking from the pool already puts the bytes side by side. The rows are new offsets over the
    same buffer.
    """
    taken = take(strings, pieces)
    _, piece_offsets, data = taken.buffers()
    starts = np.concatenate(([0], ends))
    offsets = np.frombuffer(piece_offsets, dtype=np.int32)[starts]
    return _strings(offsets, data)


def listed(entries: pa.Array, counts: Ints) -> pa.Array:
    """Return lists as Python literals: row i holds the next counts[i] entries."""
    offsets = pa.py_buffer(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))
    lists = pa.Array.from_buffers(
        pa.list_(pa.string()), len(counts), [None, offsets], children=[entries]
    )
    return concat("[", pc.binary_join(lists, constant(", ")), "]")


def listed_field(entries: pa.Array, counts: Ints) -> pa.Array:
    """Return CSV fields with lists of dicts.

    All but the empty lists contain commas and so need quotes. The quotes of the entries must
    already be doubled.
    """
    return enclosed(listed(entries, counts), counts > 0)


def field(column: pa.Array) -> pa.Array:
    """Return CSV fields.

    Those with a comma, quote or newline get quotes, with inner ones doubled.
    """
    return enclosed(doubled(column), special(column))


def doubled(column: pa.Array) -> pa.Array:
    """Return the strings with their quotes doubled, for use inside quoted fields."""
    return pc.replace_substring(column, '"', '""')


def special(column: pa.Array) -> Mask:
    """Return whether a string needs quotes in a CSV field."""
    found = pc.match_substring_regex(column, '[,"\n]')
    bits = np.frombuffer(found.buffers()[1], dtype=np.uint8)
    return np.unpackbits(bits, count=len(found), bitorder="little").view(np.bool_)


def enclosed(column: pa.Array, where: Mask) -> pa.Array:
    """Return the column with quotes around these rows. Inner quotes must already be doubled."""
    quote = either(where, '"', "")
    return concat(quote, column, quote)


def lines(columns: Sequence[pa.Array]) -> pa.Array:
    """Join fields to CSV records with a newline."""
    return pc.binary_join_element_wise(*columns[:-1], concat(columns[-1], "\n"), constant(","))


def content(column: pa.Array) -> memoryview:
    """Return the bytes of all rows of a newly made column, one after the other."""
    _, offsets, data = column.buffers()
    if data is None:
        return memoryview(b"")
    end = np.frombuffer(offsets, dtype=np.int32)[len(column)]
    return memoryview(data)[: int(end)]


def integers(numbers: Ints) -> pa.Array:
    """Return the numbers as an Arrow array over the same memory."""
    buffer = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, buffer])


def booleans(mask: Mask) -> pa.Array:
    """Return the mask as an Arrow array."""
    buffer = pa.py_buffer(np.packbits(mask, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, buffer])


def _strings(offsets: npt.NDArray[np.int32], data: pa.Buffer) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), data]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def _scalar(part: pa.Array | str) -> pa.Array | pa.Scalar:
    return constant(part) if isinstance(part, str) else part


@cache
def constant(string: str) -> pa.Scalar:
    """Return a string as an Arrow scalar."""
    return pool([string])[0]
