"""Output of `caudal series`: ingests, months, rejected cells, values."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from caudal.cli.formats import Format
from caudal.cli.show import print_result
from caudal.results.answers import Result
from caudal.series import IngestOutcome, ListedDataset, MonthOutcome, MonthResult, MonthStatus
from caudal.series.sources import RejectedCell

_CELLS_SHOWN = 5
_REJECTS_SHOWN = 20  # lines
_MONTHS_SHOWN = 12
_NUMBERS = ("version", "series", "months")
_COLUMNS_SHOWN = ["obs_date", "value", "unit", "version", "vintage_date", "quality_flag"]


def print_values(result: Result, console: Console, form: Format) -> None:
    """Print the columns that differ between rows; --format csv has all columns."""
    print_result(replace(result, table=result.table.select(_COLUMNS_SHOWN)), console, form)


def print_ingest(dataset_id: str, outcome: IngestOutcome, rejects: Path | None) -> None:
    """Print what an ingest added and rejected; `rejects` is the file with all rejected cells."""
    if outcome.is_unchanged:
        told = "nothing new: the source has not changed since the last ingest"
    elif outcome.version is None:
        told = f"nothing new: all {outcome.observations:,} observations are known already"
    else:
        told = (
            f"version {outcome.version}: {outcome.added:,} new, {outcome.revised:,} revised, "
            f"in {_count(len(outcome.months), 'month')}"
        )
    typer.echo(f"{dataset_id}: {told}")
    if outcome.races:
        typer.echo(f"note: {outcome.races} other ingests ran first; the counts exclude their data")
    if outcome.repeated:
        typer.echo(f"note: {outcome.repeated:,} dates were repeated with the same value", err=True)
    _print_rejects(outcome.rejected, rejects)


def _print_rejects(rejected: tuple[RejectedCell, ...], written: Path | None) -> None:
    """Print a line per series, column and kind of reason, and how to see the rest."""
    groups: dict[tuple[str, str, str, str], list[RejectedCell]] = {}
    for cell in rejected:
        key = (cell.series_code, cell.sheet, cell.column, cell.kind or cell.reason)
        groups.setdefault(key, []).append(cell)
    for cells in list(groups.values())[:_REJECTS_SHOWN]:
        typer.echo(f"rejected: {_rejected_line(cells)}", err=True)
    left = sum(map(len, list(groups.values())[_REJECTS_SHOWN:]))
    if left:
        every = f"{written} has" if written else "--rejects FILE writes"
        typer.echo(f"... and {left:,} more: {every} every one", err=True)
    elif rejected and written is None:
        typer.echo("--rejects FILE writes every rejected cell", err=True)


def _rejected_line(cells: list[RejectedCell]) -> str:
    first = cells[0]
    if first.column:
        sheet = f" of {first.sheet!r}" if first.sheet else f" of column {first.column!r}"
        told = f"{first.series_code}: {_count(len(cells), 'cell')}{sheet}"
    else:
        told = _count(len(cells), "damaged record")
    others = ", …" if any(cell.reason != first.reason for cell in cells) else ""
    return f"{told}: {first.reason}{others} ({_places(cells)})"


def _places(cells: list[RejectedCell]) -> str:
    """Return the first places: cell names as in a workbook, or row numbers."""
    in_sheet = bool(cells[0].sheet and cells[0].column)
    shown = [f"{one.column if in_sheet else ''}{one.row}" for one in cells[:_CELLS_SHOWN]]
    if len(cells) > _CELLS_SHOWN:
        shown.append("…")
    what = "" if in_sheet else "row " if len(cells) == 1 else "rows "
    return what + ", ".join(shown)


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def write_rejects(rejected: tuple[RejectedCell, ...], file: IO[bytes]) -> None:
    """Write every rejected cell as CSV."""
    with io.TextIOWrapper(file, "utf-8", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["series", "sheet", "row", "column", "reason"])
        for cell in rejected:
            writer.writerow([cell.series_code, cell.sheet, cell.row, cell.column, cell.reason])


def print_months(outcomes: list[MonthOutcome]) -> None:
    """Print one line per month that was not already fresh, and a total."""
    counts = Counter(str(outcome.ending) for outcome in outcomes)
    few = len(outcomes) - counts[MonthResult.FRESH] <= _MONTHS_SHOWN
    for outcome in outcomes:
        notable = outcome.ending not in (MonthResult.FRESH, MonthResult.CONSOLIDATED)
        if notable or (few and outcome.ending is not MonthResult.FRESH):
            same = outcome.reason == outcome.ending
            typer.echo(f"{outcome.month} {outcome.ending}{'' if same else f': {outcome.reason}'}")
    swept = sum(outcome.swept for outcome in outcomes)
    told = ", ".join(f"{count} {ending}" for ending, count in counts.items()) or "none"
    typer.echo(f"months: {told}" + (f"; deleted {swept} abandoned files" if swept else ""))


def datasets_table(datasets: Sequence[ListedDataset]) -> Table:
    """Return a table with one row per dataset."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("dataset", "version", "of", "series", "months", "from", "to", "problem"):
        table.add_column(name, justify="right" if name in _NUMBERS else "left")
    for one in datasets:
        if one.head is None:
            table.add_row(one.dataset_id, *[""] * 6, one.problem)
            continue
        months = sorted(one.head.months)
        table.add_row(
            one.dataset_id,
            f"{one.head.version:,}",
            one.head.vintage_date,
            f"{one.series:,}",
            f"{len(months):,}",
            months[0],
            months[-1],
            "",
        )
    return table


def status_table(months: list[MonthStatus]) -> Table:
    """Return a table with one row per month."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in (
        "month",
        "state",
        "manifest",
        "number",
        "series",
        "rows",
        "versions",
        "when",
        "left",
    ):
        table.add_column(name, justify="right" if name in ("number", "series", "rows") else "left")
    for one in months:
        newest = one.newest
        table.add_row(
            str(one.month),
            str(one.freshness),
            str(newest.status) if newest else "",
            str(newest.number) if newest else "",
            str(len(newest.files)) if newest else "",
            f"{newest.rows:,}" if newest else "",
            _versions(one.inputs.versions),
            newest.timestamp[:19] if newest else "",
            f"{len(one.placed.temps)} in .tmp" if one.placed.temps else "",
        )
    return table


def _versions(versions: tuple[int, ...]) -> str:
    shown = [str(version) for version in versions[-6:]]
    return ", ".join(["…", *shown] if len(versions) > len(shown) else shown)
