"""Which chart fits the columns of a result. `web/src/charts.ts` has the same rules for the page.

Rules, the first that fits
1. Without a column of numbers there is no chart.
2. A line along the first column of dates or times, or of numbers called year, decade, month and so
   on; of the last other column of numbers.
3. Bars for the first column of texts, or for the first of two columns of numbers.
4. A histogram of the only column of numbers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

_NUMBER = re.compile(r"(u?int|float|double|half|decimal)")
_TIME = re.compile(r"(date|time|timestamp)")
_TEXT = re.compile(r"(large_)?(string|utf8)|dictionary")
_YEARLIKE = re.compile(r"(^|_)(year|decade|month|day|date|hour|week|quarter)s?($|_)", re.IGNORECASE)


class ChartKind(StrEnum):
    BAR = "bar"
    LINE = "line"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Chart:
    """A kind of chart, and the names of its columns; `x` is empty for a histogram."""

    kind: ChartKind
    x: str
    y: str


def choose(columns: Sequence[tuple[str, str]]) -> Chart | None:
    """Return the chart for columns of these names and Arrow types; None if none makes sense.

    >>> choose([("title", "string"), ("n", "int64")])
    Chart(kind=<ChartKind.BAR: 'bar'>, x='title', y='n')
    """
    times = [
        name
        for name, kind in columns
        if _TIME.match(kind) or (_NUMBER.match(kind) and _YEARLIKE.search(name))
    ]
    numbers = [name for name, kind in columns if _NUMBER.match(kind) and name not in times[:1]]
    if not numbers:
        return None
    if times:
        return Chart(ChartKind.LINE, times[0], numbers[-1])
    texts = [name for name, kind in columns if _TEXT.match(kind)]
    if texts:
        return Chart(ChartKind.BAR, texts[0], numbers[-1])
    if len(numbers) > 1:
        return Chart(ChartKind.BAR, numbers[0], numbers[1])
    return Chart(ChartKind.HISTOGRAM, "", numbers[0])
