"""Rows of different lengths, stored one after the other."""

import numpy as np

from caudal.generate.dice import Ints


def spread(counts: Ints) -> tuple[Ints, Ints]:
    """Return, for every entry of rows with these counts, its row and its position in the row."""
    row = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    starts = np.cumsum(counts) - counts
    return row, np.arange(len(row), dtype=np.int64) - starts[row]


def distinct(row: Ints, entry: Ints, rows: int) -> tuple[Ints, Ints]:
    """Return the entries without repetitions within a row, and the new counts."""
    key = row * (entry.max(initial=0) + 1) + entry
    kept = np.sort(np.unique(key, return_index=True)[1])
    return entry[kept], np.bincount(row[kept], minlength=rows)
