"""A chart of a result, for notebooks. Needs matplotlib, which is an optional package."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caudal import extras
from caudal.errors import UsageError
from caudal.results.charts import Chart, ChartKind, choose
from caudal.results.values import text

if TYPE_CHECKING:
    import pyarrow as pa

_COLOR = "#0b6e8f"
_MOST_ROWS, _MOST_BARS, _BINS = 5_000, 40, 30
_LONGEST = 40  # characters of a label


@dataclass(frozen=True, repr=False)
class Plot:
    """A drawn chart. Notebooks show it; `save` writes it as .png or .svg."""

    chart: Chart
    figure: Any  # of matplotlib

    def __repr__(self) -> str:
        along = f" along {self.chart.x}" if self.chart.x else ""
        return f"{self.chart.kind} of {self.chart.y}{along}"

    def _repr_svg_(self) -> str:
        return self._written("svg").decode()

    def save(self, path: str | Path) -> None:
        """Write the picture to a file, whose ending chooses the format."""
        form = Path(path).suffix.lower().lstrip(".")
        if form not in ("png", "svg"):
            raise UsageError(f"{path}: a plot is written as .png or .svg")
        Path(path).write_bytes(self._written(form))

    def _written(self, form: str) -> bytes:
        sink = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else {"Software": None}
        self.figure.savefig(sink, format=form, metadata=metadata)
        return sink.getvalue()


def plot_rows(table: "pa.Table", title: str, kind: str | None, x: str, y: str) -> Plot:
    """Draw the first rows of a table; what is not given is chosen by the types of its columns."""
    extras.require("plot", "a plot")
    chart = _chosen(table, kind, x, y)
    figure = _figure()
    axes = figure.subplots()
    values = _floats(table, chart.y)
    {ChartKind.BAR: _bars, ChartKind.LINE: _line, ChartKind.HISTOGRAM: _histogram}[chart.kind](
        axes, table.slice(0, _MOST_ROWS), chart, values[:_MOST_ROWS]
    )
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    return Plot(chart, figure)


def _chosen(table: "pa.Table", kind: str | None, x: str, y: str) -> Chart:
    for name in (x, y):
        if name and name not in table.column_names:
            known = ", ".join(table.column_names)
            raise UsageError(f"there is no column {name!r}: the columns are {known}")
    found = choose([(one.name, str(one.type)) for one in table.schema])
    if found is None and not y:
        raise UsageError("no column is a number: there is nothing to draw")
    if kind is not None and kind not in list(ChartKind):
        raise UsageError(f"no chart {kind!r}: choose one of {', '.join(ChartKind)}")
    usual = found or Chart(ChartKind.BAR, "", y)
    chosen = ChartKind(kind) if kind else usual.kind
    along = x or usual.x or table.column_names[0]
    return Chart(chosen, "" if chosen is ChartKind.HISTOGRAM else along, y or usual.y)


def _figure() -> Any:
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "caudal"
    return Figure(figsize=(9, 4.2), dpi=110, layout="constrained")


def _floats(table: "pa.Table", name: str) -> list[float | None]:
    import pyarrow as pa

    try:
        floats: list[float | None] = table[name].cast(pa.float64(), safe=False).to_pylist()
    except pa.ArrowException:
        raise UsageError(f"column {name!r} has no numbers to draw") from None
    return floats


def _bars(axes: Any, table: "pa.Table", chart: Chart, values: list[float | None]) -> None:
    names = [_short(one) for one in table[chart.x].slice(0, _MOST_BARS).to_pylist()]
    places = range(len(names))
    axes.barh(places, [one or 0.0 for one in values[:_MOST_BARS]], color=_COLOR)
    axes.set_yticks(places, names, fontsize=8, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(chart.y, parse_math=False)


def _line(axes: Any, table: "pa.Table", chart: Chart, values: list[float | None]) -> None:
    pairs = zip(table[chart.x].to_pylist(), values, strict=True)
    points = sorted((x, y) for x, y in pairs if x is not None and y is not None)
    marker = "o" if len(points) < 60 else ""
    axes.plot(*zip(*points, strict=True), marker=marker, markersize=3, color=_COLOR)
    axes.set_xlabel(chart.x, parse_math=False)
    axes.set_ylabel(chart.y, parse_math=False)
    axes.grid(visible=True, linewidth=0.4, alpha=0.5)


def _histogram(axes: Any, table: "pa.Table", chart: Chart, values: list[float | None]) -> None:
    del table
    axes.hist([one for one in values if one is not None], bins=_BINS, color=_COLOR)
    axes.set_xlabel(chart.y, parse_math=False)
    axes.set_ylabel("rows")


def _short(value: Any) -> str:
    found = text(value)
    return found if len(found) <= _LONGEST else f"{found[: _LONGEST - 1]}…"
