"""Charts of results: which one is chosen, that it shows the rows, and what cannot be drawn."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from caudal.errors import UsageError
from caudal.results.answers import Result
from caudal.results.charts import Chart, ChartKind, choose

FILMS = Result("q", "Films", pa.table({"title": ["a", "<b> $x$"], "score": [1.5, None]}))
YEARS = Result("q", "Years", pa.table({"n": [3, 1], "decade": [2000, 1990]}))


@pytest.mark.parametrize(
    ("columns", "chart"),
    [
        ([("title", "string"), ("n", "int64")], Chart(ChartKind.BAR, "title", "n")),
        ([("n", "int64"), ("decade", "int64")], Chart(ChartKind.LINE, "decade", "n")),
        ([("at", "timestamp[us]"), ("n", "double")], Chart(ChartKind.LINE, "at", "n")),
        ([("a", "int32"), ("b", "decimal128(9, 2)")], Chart(ChartKind.BAR, "a", "b")),
        ([("n", "uint8")], Chart(ChartKind.HISTOGRAM, "", "n")),
        ([("yearly", "string")], None),
        ([("year", "int64")], None),
    ],
)
def test_the_chart_follows_from_the_types(
    columns: list[tuple[str, str]], chart: Chart | None
) -> None:
    assert choose(columns) == chart


def test_bars_are_drawn_for_texts_of_any_kind(tmp_path: Path) -> None:
    plot = FILMS.plot()
    assert repr(plot) == "bar of score along title"
    (axes,) = plot.figure.axes
    assert [one.get_width() for one in axes.patches] == [1.5, 0.0]
    assert [one.get_text() for one in axes.get_yticklabels()] == ["a", "<b> $x$"]
    plot.save(tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in plot._repr_svg_()


def test_a_line_runs_along_its_column() -> None:
    (axes,) = YEARS.plot().figure.axes
    assert axes.lines[0].get_xydata().tolist() == [[1990, 1], [2000, 3]]
    days = Result("q", "", pa.table({"day": [date(2020, 1, 1)], "n": [1]}))
    assert repr(days.plot()) == "line of n along day"


def test_another_chart_can_be_asked_for() -> None:
    assert repr(YEARS.plot("histogram", y="decade")) == "histogram of decade"
    assert repr(YEARS.plot("bar", x="decade", y="n")) == "bar of n along decade"


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: FILMS.plot("pie"), "choose one of bar, line, histogram"),
        (lambda: FILMS.plot(y="nothing"), "the columns are title, score"),
        (lambda: FILMS.plot(y="title"), "no numbers to draw"),
        (lambda: Result("q", "", pa.table({"t": ["a"]})).plot(), "nothing to draw"),
        (lambda: FILMS.plot().save("x.pdf"), ".png or .svg"),
    ],
)
def test_what_cannot_be_drawn_is_said(ask: object, said: str) -> None:
    assert callable(ask)
    with pytest.raises(UsageError, match=said):
        ask()


def test_a_summary_is_the_description() -> None:
    assert FILMS.summary().rows() == FILMS.describe().rows()
