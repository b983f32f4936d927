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
    where the next one begins: of the damaged ones, only those that follow a wanted one are found.
    """
    if not len(lines):
        return no_records(lines)
    after = np.searchsorted(damaged, lines, side="right")
    offsets = _offsets(batch, np.concatenate([lines, damaged[after[after < len(damaged)]]]))
    firsts = offsets[: len(lines)]
    begins = np.sort(np.concatenate([starts, offsets[len(lines) :], firsts]), kind="stable")
    ends = np.append(begins, len(batch.data))[np.searchsorted(begins, firsts, side="right")]
    data = batch.data.data
    texts = [
        str(data[first:end], "utf-8", "replace").rstrip("\r\n")
        for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)
    ]
    return pa.array(texts, pa.string())


def _offsets(batch: Batch, lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where these lines of the batch begin.

    Newlines are counted by blocks, and looked for only in the blocks that hold the lines.
    """
    wanted = lines - batch.first_line
    edges = np.arange(0, len(batch.data), _BLOCK)
    before = batch.lines(edges) - batch.first_line  # newlines before each block
    chosen = np.unique(np.searchsorted(before, wanted[wanted > 0]) - 1)
    block, place = _newlines(batch.data, chosen)
    among = np.arange(len(block)) - np.searchsorted(block, block)  # newlines before it in its block
    ranks = np.append(0, before[chosen[block]] + among + 1)  # line 0 begins at offset 0
    begins = np.append(0, edges[chosen[block]] + place + 1)
    return begins[np.searchsorted(ranks, wanted)]


def _newlines(
    data: NDArray[np.uint8], blocks: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the newlines in some blocks: which one of these blocks, and where in it."""
    whole = data[: len(data) // _BLOCK * _BLOCK].reshape(-1, _BLOCK)
    inner = blocks[blocks < len(whole)]
    block, place = divmod(np.flatnonzero(whole[inner] == _NEWLINE), _BLOCK)
    if len(inner) == len(blocks):
        return block, place
    last = np.flatnonzero(data[whole.size :] == _NEWLINE)
    return np.append(block, np.full(len(last), len(inner))), np.append(place, last)


def records_of_rows(texts: Mapping[str, pa.ChunkedArray], rows: NDArray[np.int64]) -> pa.Array:
    """Return rows of typed columns as JSON objects of texts."""
    columns = {name: column.take(pa.array(rows)).to_pylist() for name, column in texts.items()}
    values = zip(*columns.values(), strict=True) if columns else [()] * len(rows)
    shown = [json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) for row in values]
    return pa.array(shown, pa.string())
