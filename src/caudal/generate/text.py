"""Text by the column: pools of strings, and the few ways to put them together.

A pool is an Arrow array of strings made once; a column is an Arrow array with one string
per row, made by taking from pools and joining. All work is done by Arrow's kernels over
whole chunks, so there is no Python per row. Arrays are made from buffers, because
`pa.array`, `pa.scalar` and `to_numpy` import pandas wherever it is installed, which takes
longer than a small run.
"""

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from caudal.generate.dice import Ints, Mask


def pool(strings: Iterable[str]) -> pa.Array:
    """An array of strings to take from."""
    encoded = [string.encode() for string in strings]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return _strings(ends, pa.py_buffer(b"".join(encoded)))


def take(strings: pa.Array, index: Ints) -> pa.Array:
    """The strings at these positions of a pool."""
    return strings.take(integers(index))


def digits(numbers: Ints) -> pa.Array:
    """Integers in decimal."""
    return integers(numbers).cast(pa.string())


def concat(*parts: pa.Array | str) -> pa.Array:
    """Row by row, the parts one after the other; a plain string stands in every row."""
    return pc.binary_join_element_wise(*map(_scalar, parts), constant(""))


def either(condition: Mask, yes: pa.Array | str, no: pa.Array | str) -> pa.Array:
    """Row by row, one or the other."""
    return pc.if_else(booleans(condition), _scalar(yes), _scalar(no))


def blank(column: pa.Array, where: Mask) -> pa.Array:
    """The column with these rows emptied."""
    return either(where, "", column)


def weave(strings: pa.Array, pieces: Ints, ends: Ints) -> pa.Array:
    """One string per row, row i being the concatenation of pieces[ends[i-1]:ends[i]].

    Taking from the pool already lays the bytes side by side; the rows are new offsets
    over the same buffer.
    """
    taken = take(strings, pieces)
    _, piece_offsets, data = taken.buffers()
    starts = np.concatenate(([0], ends))
    offsets = np.frombuffer(piece_offsets, dtype=np.int32)[starts]
    return _strings(offsets, data)


def listed(entries: pa.Array, counts: Ints) -> pa.Array:
    """Python-literal lists: row i holds the next counts[i] entries."""
    offsets = pa.py_buffer(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))
    lists = pa.Array.from_buffers(
        pa.list_(pa.string()), len(counts), [None, offsets], children=[entries]
    )
    return concat("[", pc.binary_join(lists, constant(", ")), "]")


def listed_field(entries: pa.Array, counts: Ints) -> pa.Array:
    """CSV fields with lists of dicts: all but the empty ones hold commas and so need quotes.

    The entries come with their quotes already doubled.
    """
    return enclosed(listed(entries, counts), counts > 0)


def field(column: pa.Array) -> pa.Array:
    """CSV fields: in quotes, with quotes doubled, where a comma, quote or newline needs it."""
    return enclosed(doubled(column), special(column))


def doubled(column: pa.Array) -> pa.Array:
    """The strings with their quotes doubled, to become parts of fields in quotes."""
    return pc.replace_substring(column, '"', '""')


def special(column: pa.Array) -> Mask:
    """Which strings cannot stand in a CSV field without quotes."""
    found = pc.match_substring_regex(column, '[,"\n]')
    bits = np.frombuffer(found.buffers()[1], dtype=np.uint8)
    return np.unpackbits(bits, count=len(found), bitorder="little").view(np.bool_)


def enclosed(column: pa.Array, where: Mask) -> pa.Array:
    """The column with quotes around these rows; quotes inside are already doubled."""
    quote = either(where, '"', "")
    return concat(quote, column, quote)


def lines(columns: Sequence[pa.Array]) -> pa.Array:
    """CSV records with their newline, from fields."""
    return pc.binary_join_element_wise(*columns[:-1], concat(columns[-1], "\n"), constant(","))


def content(column: pa.Array) -> memoryview:
    """The bytes of all rows of a freshly made column, one after the other."""
    _, offsets, data = column.buffers()
    if data is None:
        return memoryview(b"")
    end = np.frombuffer(offsets, dtype=np.int32)[len(column)]
    return memoryview(data)[: int(end)]


def integers(numbers: Ints) -> pa.Array:
    """The numbers as an Arrow array over the same memory."""
    buffer = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, buffer])


def booleans(mask: Mask) -> pa.Array:
    """The mask as an Arrow array."""
    buffer = pa.py_buffer(np.packbits(mask, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, buffer])


def _strings(offsets: npt.NDArray[np.int32], data: pa.Buffer) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), data]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def _scalar(part: pa.Array | str) -> pa.Array | pa.Scalar:
    return constant(part) if isinstance(part, str) else part


@cache
def constant(string: str) -> pa.Scalar:
    """A string as an Arrow scalar."""
    return pool([string])[0]
