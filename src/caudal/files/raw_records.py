"""The raw records of rejected rows, found again by their lines."""

import json
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.kernels.csv import Batch

RawRecords = Callable[[NDArray[np.int64]], pa.Array]  # ascending lines -> texts

_NEWLINE = 10
_BLOCK = 4096  # bytes


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
    begins = np.concatenate([batch.lines(starts), damaged])
    begins.sort(kind="stable")
    after = np.searchsorted(begins, lines, side="right")
    following = np.append(begins, np.iinfo(np.int64).max)[after]
    texts = [
        batch.data[first:end].tobytes()
        for first, end in zip(_offsets(batch, lines), _offsets(batch, following), strict=True)
    ]
    return pa.array([one.rstrip(b"\r\n").decode("utf-8", "replace") for one in texts], pa.string())


def _offsets(batch: Batch, lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where these lines begin; the end of the batch for lines behind it.

    Newlines are counted by blocks, and looked for in the blocks that hold the lines.
    """
    blocks = np.arange(0, len(batch.data), _BLOCK)
    before = batch.lines(blocks) - batch.first_line  # newlines before each block
    wanted = lines - batch.first_line
    found, ranks = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]  # line 0 begins at offset 0
    for block in np.unique(np.searchsorted(before, wanted[wanted > 0]) - 1):
        start = blocks[block]
        ends = np.flatnonzero(batch.data[start : start + _BLOCK] == _NEWLINE) + 1
        found.append(start + ends)
        ranks.append(before[block] + np.arange(1, len(ends) + 1))
    found.append(np.array([len(batch.data)]))
    rank = np.concatenate(ranks)
    at = np.searchsorted(rank, wanted)
    return np.where(np.append(rank, -1)[at] == wanted, np.concatenate(found)[at], len(batch.data))


def records_of_rows(texts: Mapping[str, pa.ChunkedArray], rows: NDArray[np.int64]) -> pa.Array:
    """Return rows of typed columns as JSON objects of texts."""
    columns = {name: column.take(pa.array(rows)).to_pylist() for name, column in texts.items()}
    values = zip(*columns.values(), strict=True) if columns else [()] * len(rows)
    shown = [json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) for row in values]
    return pa.array(shown, pa.string())
