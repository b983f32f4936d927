"""How the columns of a table share the width of a screen: pure decisions.

1. A column gets its natural width if all columns fit.
2. Else texts are folded into narrower columns, but not below `least`. Numbers and dates are not
   folded.
3. Else the last columns are left out, and the table says how many.
"""

from collections.abc import Sequence
from dataclasses import dataclass

GAP = 3  # characters between two columns
EDGES = 2  # characters before the first and after the last column
_FOLDED = 12  # a text or a heading is folded to this width at least


@dataclass(frozen=True)
class ColumnSize:
    """The width of a column's heading and of its widest cell, and whether cells may be folded."""

    heading: int
    cells: int
    is_text: bool

    @property
    def natural(self) -> int:
        return max(self.heading, self.cells, 1)

    @property
    def least(self) -> int:
        cells = min(self.cells, _FOLDED) if self.is_text else self.cells
        return max(min(self.heading, _FOLDED), cells, 1)


@dataclass(frozen=True)
class Layout:
    """The widths of the columns that are shown, and how many others are not shown."""

    widths: tuple[int, ...]
    left_out: int = 0


def lay_out(columns: Sequence[ColumnSize], width: int) -> Layout:
    """Return the widths of the first columns that fit."""
    if _total([one.least for one in columns]) <= width:
        return Layout(_shared(columns, width))
    shown = max(1, sum(_fits(columns, count, width) for count in range(1, len(columns))))
    left_out = len(columns) - shown
    room = width - GAP - len(more_columns(left_out))
    return Layout(_shared(columns[:shown], room), left_out)


def more_columns(count: int) -> str:
    """Return the heading in place of columns that are not shown."""
    return f"… {count:,} more"


def _fits(columns: Sequence[ColumnSize], count: int, width: int) -> bool:
    more = len(more_columns(len(columns) - count))
    return _total([*(one.least for one in columns[:count]), more]) <= width


def _shared(columns: Sequence[ColumnSize], width: int) -> tuple[int, ...]:
    """Return widths from least to natural. Columns that want little more get it first."""
    widths = [one.least for one in columns]
    spare = max(0, width - _total(widths))
    wanting = sorted(range(len(columns)), key=lambda place: columns[place].natural - widths[place])
    for done, place in enumerate(wanting):
        more = min(columns[place].natural - widths[place], spare // (len(wanting) - done))
        widths[place] += more
        spare -= more
    return tuple(widths)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1) + EDGES
