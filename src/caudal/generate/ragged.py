"""Rows of different lengths, laid end to end."""

import numpy as np

from caudal.generate.dice import Ints


def spread(counts: Ints) -> tuple[Ints, Ints]:
    """For every entry of rows with so many entries: its row, and its place in the row."""
    row = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    starts = np.cumsum(counts) - counts
    return row, np.arange(len(row), dtype=np.int64) - starts[row]


def distinct(row: Ints, entry: Ints, rows: int) -> tuple[Ints, Ints]:
    """The entries without those that repeat an earlier one of their row, and the new counts."""
    key = row * (entry.max(initial=0) + 1) + entry
    kept = np.sort(np.unique(key, return_index=True)[1])
    return entry[kept], np.bincount(row[kept], minlength=rows)
