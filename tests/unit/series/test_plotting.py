"""What a picture of a series shows."""

from datetime import date, timedelta

import pyarrow as pa

from caudal.series.plotting import _line, _lone


def drawn(*days: int) -> list[float]:
    """The values that are drawn as points of their own; each value is its day."""
    first = date(2024, 1, 1)
    table = pa.table(
        {"obs_date": [first + timedelta(days=day) for day in days], "value": [*map(float, days)]}
    )
    return _lone(*_line(table))[1]


def test_a_point_without_neighbours_is_drawn_as_a_point() -> None:
    assert drawn() == []
    assert drawn(7) == [7]
    assert drawn(0, 1, 2) == []
    assert drawn(0, 1, 2, 40, 80, 81) == [40]
    assert drawn(0, 40, 41, 42, 43, 44, 90) == [0, 90]
