"""Plots of a series. Needs matplotlib, which is an optional package."""

import math
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from caudal.errors import MissingPackageError, UsageError

FORMATS = ("png", "svg")
_COLOR = "#1f5f8b"
_LONGEST_GAP = 3  # the line breaks at gaps longer than this many usual distances


def plot_format(path: Path) -> str:
    """Return the format that the name of a file selects."""
    form = path.suffix.lower().lstrip(".")
    if form not in FORMATS:
        raise UsageError(f"{path}: a plot is written as .png or .svg")
    return form


def draw(table: pa.Table, title: str, sink: IO[bytes], form: str) -> None:
    """Draw the rows of one series into a file. The same rows give the same picture."""
    figure = _figure()
    axes = figure.subplots()
    days, values = _line(table)
    axes.plot(days, values, linewidth=1.1, color=_COLOR)
    axes.plot(*_lone(days, values), ".", markersize=4, color=_COLOR)
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_ylabel(_unit(table))
    axes.grid(visible=True, linewidth=0.4, alpha=0.5)
    axes.margins(x=0.01)
    axes.spines[["top", "right"]].set_visible(False)
    metadata = {"Date": None} if form == "svg" else {"Software": None}
    figure.savefig(sink, format=form, metadata=metadata)


def _figure() -> Any:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("plots need matplotlib: pip install 'caudal[plot]'") from error
    matplotlib.rcParams["svg.hashsalt"] = "caudal"
    return Figure(figsize=(10, 4.5), dpi=120, layout="constrained")


def _line(table: pa.Table) -> tuple[list[date], list[float]]:
    """Return the points of the line, with a break wherever observations are missing for long."""
    days: list[date] = table.column("obs_date").to_pylist()
    values: list[float] = table.column("value").to_pylist()
    steps = sorted((after - before).days for before, after in pairwise(days))
    usual = max(steps[len(steps) // 2] if steps else 1, 3)
    points: tuple[list[date], list[float]] = ([], [])
    for place, (day, value) in enumerate(zip(days, values, strict=True)):
        if place and (day - days[place - 1]).days > _LONGEST_GAP * usual:
            points[0].append(day)
            points[1].append(math.nan)
        points[0].append(day)
        points[1].append(value)
    return points


def _lone(days: list[date], values: list[float]) -> tuple[list[date], list[float]]:
    """Return the points without a neighbour. A line has no length there and would be invisible."""
    framed = [math.nan, *values, math.nan]
    places = [
        place
        for place, value in enumerate(values)
        if not math.isnan(value) and math.isnan(framed[place]) and math.isnan(framed[place + 2])
    ]
    return [days[place] for place in places], [values[place] for place in places]


def _unit(table: pa.Table) -> str:
    units = sorted(set(table.column("unit").to_pylist()))
    return ", ".join(units).replace("_", " ")
