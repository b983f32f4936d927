"""`names` and `items` over Arrow columns, by the fast reader, and by the slow one for other texts.

What a text means is what `ast.literal_eval` makes of it. Both functions share these rules:

- NULL, a text that is no valid literal, and a literal that is not a list give NULL.
- An element of another kind than the wanted one contributes nothing.
- A lone surrogate (`'\\ud83d'`) becomes U+FFFD; so does each half of an escaped pair, since
  Python does not join them.
- A text longer than 1 MiB that is not plain (see `grammar`) gives NULL, as does any of 2 GiB.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.errors import UsageError
from caudal.kernels.literals import exact, scan
from caudal.kernels.literals.extract import extract
from caudal.kernels.spans import Spans, as_offsets, indices_of, require_sound, spans_of

LIST_OF_STRINGS = pa.list_(pa.string())

# Arrow's 32-bit offsets reach this far; longer columns are read in parts.
MAX_BYTES_PER_PART = 2**31 - 1


def items(texts: pa.Array | pa.ChunkedArray) -> pa.ListArray:
    """Return the strings of each Python-literal list: `['a', "b"]` gives a, b.

    Elements that are not strings contribute nothing.
    """
    return _read(texts, scan.ITEMS)


def names(texts: pa.Array | pa.ChunkedArray) -> pa.ListArray:
    """Return the `name` values of each Python-literal list of dicts: `[{'name': 'a'}]` gives a.

    Elements that are not dicts, dicts without `name` and names that are not strings contribute
    nothing; of a repeated key the last counts; names inside nested dicts are not looked for.
    """
    return _read(texts, scan.NAMES)


def _read(texts: pa.Array | pa.ChunkedArray, wanted: int) -> pa.ListArray:
    """Read a column of any string type: chunk by chunk, and a dictionary's values only once."""
    if isinstance(texts, pa.ChunkedArray):
        parts = [_read(chunk, wanted) for chunk in texts.chunks]
        return pa.concat_arrays(parts) if parts else pa.array([], LIST_OF_STRINGS)
    require_sound(texts)
    if pa.types.is_null(texts.type):
        return pa.nulls(len(texts), LIST_OF_STRINGS)
    if pa.types.is_dictionary(texts.type):
        indices = indices_of(texts)
        places = pa.array(indices, mask=indices == len(texts.dictionary))
        return _read(texts.dictionary, wanted).take(places)
    if pa.types.is_string_view(texts.type):
        return _read(as_offsets(texts), wanted)
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        raise UsageError(f"names() and items() read text, not {texts.type}: cast it to VARCHAR")
    return _read_strings(texts, wanted)


def _read_strings(texts: pa.Array, wanted: int) -> pa.ListArray:
    spans = spans_of(texts)
    if spans.offsets[-1] - spans.offsets[0] > MAX_BYTES_PER_PART:
        return _read_halves(texts, wanted)
    valid = texts.is_valid().to_numpy(zero_copy_only=False)
    list_ends, string_ends, data, unsure = extract(spans.addresses, valid, wanted)
    strings = pa.StringArray.from_buffers(
        len(string_ends) - 1, pa.py_buffer(string_ends), pa.py_buffer(data)
    )
    lists = pa.ListArray.from_arrays(pa.array(list_ends), strings, mask=pa.array(~valid))
    return _with_exact(lists, spans, np.flatnonzero(unsure), wanted)


def _read_halves(texts: pa.Array, wanted: int) -> pa.ListArray:
    if len(texts) == 1:
        return pa.nulls(1, LIST_OF_STRINGS)
    middle = len(texts) // 2
    halves = (texts[:middle], texts[middle:])
    return pa.concat_arrays([_read_strings(half, wanted) for half in halves])


def _with_exact(
    lists: pa.ListArray, spans: Spans, rows: NDArray[np.intp], wanted: int
) -> pa.ListArray:
    """Return the lists with those of the given rows replaced by what the slow reader finds."""
    if len(rows) == 0:
        return lists
    select: Callable[[Sequence[object]], list[str]] = (
        exact.items_of if wanted == scan.ITEMS else exact.names_of
    )
    corrected = [
        None if literal is None else select(literal)
        for literal in exact.read_lists(spans.text(row) for row in rows)
    ]
    sources = np.arange(len(lists))
    sources[rows] = len(lists) + np.arange(len(rows))
    both = pa.concat_arrays([lists, pa.array(corrected, LIST_OF_STRINGS)])
    return both.take(pa.array(sources))
