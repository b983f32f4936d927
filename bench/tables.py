"""The tables of a report, for the terminal and for Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import rich.box
import rich.table

from bench.race import Race, Score

TARGETS: Mapping[str, float] = {"duckdb": 0.6, "polars": 1.1, "pandas": 0.4}


@dataclass(frozen=True)
class Table:
    """Cells as text. The first column is a name, the others are numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        rule = [":--"] + ["--:"] * (len(self.head) - 1)
        lines = (self.head, rule, *self.rows)
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def rich(self) -> rich.table.Table:
        table = rich.table.Table(title=self.title, box=rich.box.SIMPLE, title_justify="left")
        for place, name in enumerate(self.head):
            table.add_column(name, justify="right" if place else "left")
        for row in self.rows:
            table.add_row(*row)
        return table


def race_table(race: Race) -> Table:
    """One race: wall times, memory and how Caudal compares."""
    caudal = next(score for score in race.scores if score.name == "caudal")
    return Table(
        title=f"{race.app}, scale {race.scale:g}: {race.bytes / 1e6:,.0f} MB of CSV",
        head=(
            "contestant",
            "median s",
            "best s",
            "CPU s",
            "peak MB",
            "caudal / it",
            "target",
            "met",
        ),
        rows=[_race_row(score, caudal) for score in race.scores],
    )


def _race_row(score: Score, caudal: Score) -> list[str]:
    ratio = caudal.wall_seconds / score.wall_seconds
    target = TARGETS.get(score.name)
    return [
        score.name,
        f"{score.wall_seconds:.2f}",
        f"{score.best_seconds:.2f}",
        f"{score.cpu_seconds:.2f}",
        f"{score.peak_bytes / 1e6:.0f}",
        f"{ratio:.2f}",
        "" if target is None else f"≤ {target:g}",
        "" if target is None else met(ratio <= target),
    ]


def met(truth: bool) -> str:
    return "yes" if truth else "no"


def sentiment_table(speeds: Sequence[Mapping[str, str | float]]) -> Table:
    """The rows of `bench.sentiment.measure()`: a name each, then numbers."""
    head = list(speeds[0])
    return Table(
        title="sentiment, one core",
        head=[name.replace("_", " ") for name in head],
        rows=[[_cell(speed[name]) for name in head] for speed in speeds],
    )


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Labels and values as a Markdown list."""
    return "\n".join(f"- {label}: {value}" for label, value in pairs)
