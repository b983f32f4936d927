"""The raw records of the first rejected rows of each reason, for people who read the report.

Bounded for any number of rows and any bytes: a few rows of each reason, each record cut to a line,
and a few kilobytes of one batch in all. The first row of every reason comes before the second of
any, so that each reason has an example.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

PER_REASON = 5
MOST_RECORDS = 64  # of one batch
MOST_BYTES = 16 << 10  # UTF-8, of one batch
MOST_CHARACTERS = 200  # of one record
CUT = "…"  # the last character of a record that was cut


def first_places(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which rows are the first of their reasons, in the order in which they are wanted.

    >>> first_places(np.array([7, 7, 3, 7])).tolist()
    [0, 2, 1, 3]
    """
    order = np.argsort(codes, kind="stable")
    grouped = codes[order]
    rank = np.arange(len(codes)) - np.searchsorted(grouped, grouped)  # among those of its reason
    is_first = rank < PER_REASON
    first, ranks = order[is_first], rank[is_first]
    return first[np.lexsort((first, ranks))][:MOST_RECORDS]


def shortened(record: str) -> str:
    """Return a record, cut if it is long.

    >>> len(shortened("x" * 201)), shortened("x" * 201)[-2:]
    (200, 'x…')
    """
    return record if len(record) <= MOST_CHARACTERS else record[: MOST_CHARACTERS - 1] + CUT


def bounded(records: Iterable[tuple[int, str | None]]) -> dict[int, str]:
    """Return by line as many of these records as may be kept of one batch."""
    kept: dict[int, str] = {}
    left = MOST_BYTES
    for line, record in records:
        if record is None:
            continue
        text = shortened(record)
        size = len(text.encode())
        if size <= left:
            kept[line] = text
            left -= size
    return kept
