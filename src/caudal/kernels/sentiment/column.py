"""`score`: the polarity of every text in an Arrow column."""

import threading
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from caudal.kernels.sentiment import exact
from caudal.kernels.sentiment.kernel import score_rows
from caudal.kernels.sentiment.lexicon import Lexicon, load_lexicon
from caudal.kernels.sentiment.tables import Tables, compile_tables
from caudal.kernels.spans import as_offsets, indices_of, require_sound, spans_of

Scores = npt.NDArray[np.float64]


class _Compiled(NamedTuple):
    lexicon: Lexicon
    tables: Tables


_lock = threading.Lock()
_compiled: _Compiled | None = None


def compiled_lexicon() -> _Compiled:
    """Return the lexicon and its tables, loaded once, at the first use, by one thread."""
    global _compiled
    with _lock:
        if _compiled is None:
            lexicon = load_lexicon()
            _compiled = _Compiled(lexicon, compile_tables(lexicon.words))
        return _compiled


def score(texts: pa.Array | pa.ChunkedArray) -> Scores:
    """Return the polarity, in [-1, 1], of each text; 0.0 for a null or empty one.

    >>> score(pa.array(["a very good film", "not good", None])).tolist()
    [0.9099999999999999, -0.35, 0.0]

    Equal to TextBlob's default analyzer to the last bit. Takes strings in any Arrow layout,
    dictionary-encoded ones, and the null type. Releases the interpreter's lock while it computes.
    """
    if isinstance(texts, pa.ChunkedArray):
        return np.concatenate([np.empty(0), *(score(chunk) for chunk in texts.chunks)])
    require_sound(texts)
    if pa.types.is_null(texts.type):
        return np.zeros(len(texts))
    if pa.types.is_dictionary(texts.type):
        return _score_dictionary(texts)
    if pa.types.is_string_view(texts.type):
        return _score_strings(as_offsets(texts))
    if pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type):
        return _score_strings(texts)
    raise TypeError(f"sentiment needs a column of text, not of {texts.type}")


def _score_dictionary(texts: pa.DictionaryArray) -> Scores:
    """Score each distinct text once. The last value stands for null."""
    values = np.append(score(texts.dictionary), 0.0)
    scores: Scores = values[indices_of(texts)]
    return scores


def _score_strings(texts: pa.Array) -> Scores:
    if len(texts) == 0:
        return np.empty(0)
    compiled = compiled_lexicon()
    data, starts, ends = column_buffers(texts)
    scores: Scores = score_rows(data, starts, ends, compiled.tables)
    for row in np.flatnonzero(np.isnan(scores)):
        text = data[starts[row] : ends[row]].tobytes().decode("utf-8", "replace")
        scores[row] = exact.polarity(text, compiled.lexicon.words)
    return scores


def column_buffers(texts: pa.Array) -> tuple[Any, Any, Any]:
    """Return the bytes of a string array, and the start and end of each row; null is empty."""
    offsets, data = spans_of(texts)
    starts, ends = offsets[:-1], offsets[1:].copy()
    if texts.null_count:
        is_null = texts.is_null().to_numpy(zero_copy_only=False)
        ends[is_null] = starts[is_null]
    data.flags.writeable = False
    return data, starts, ends
