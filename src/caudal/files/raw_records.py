"""The raw records of rejected rows, found again by their lines."""

import json
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.kernels.csv import Batch

RawRecords = Callable[[NDArray[np.int64]], pa.Array]  # ascending lines -> texts

_NEWLINE = 10


def no_records(lines: NDArray[np.int64]) -> pa.Array:
    """Return nulls: the records of this piece are not known."""
    return pa.nulls(len(lines), pa.string())


def records_of_batch(
    batch: Batch, starts: NDArray[np.int64], damaged: NDArray[np.int64], lines: NDArray[np.int64]
) -> pa.Array:
    """Return the text of the records of a batch that begin on these lines.

    `starts` are the offsets of all sound records, `damaged` the lines of all others. A record ends
    where the next one begins.
    """
    if not len(lines):
        return no_records(lines)
    begins = np.union1d(batch.lines(starts), damaged)
    ends = np.searchsorted(begins, lines, side="right")
    newlines = np.flatnonzero(batch.data == _NEWLINE) + 1
    offsets = np.concatenate([[0], newlines, [len(batch.data)]])
    following = np.append(begins, batch.first_line + len(offsets) - 1)[ends]
    last = len(offsets) - 1
    texts = [
        batch.data[offsets[first] : offsets[min(after, last)]].tobytes()
        for first, after in zip(lines - batch.first_line, following - batch.first_line, strict=True)
    ]
    return pa.array([one.rstrip(b"\r\n").decode("utf-8", "replace") for one in texts], pa.string())


def records_of_rows(texts: Mapping[str, pa.ChunkedArray], rows: NDArray[np.int64]) -> pa.Array:
    """Return rows of typed columns as JSON objects of texts."""
    columns = {name: column.take(pa.array(rows)).to_pylist() for name, column in texts.items()}
    values = zip(*columns.values(), strict=True) if columns else [()] * len(rows)
    shown = [json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) for row in values]
    return pa.array(shown, pa.string())
