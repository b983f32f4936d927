"""Output of the commands of datasets."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from caudal.cli.show import print_rejects
from caudal.datasets.changes import Changed, changed_rows
from caudal.datasets.contents import Contents, VersionSummary
from caudal.datasets.reports import LoadReport
from caudal.datasets.stream_loader import NAME, SkippedPart
from caudal.formats.dataset_replies import VersionEntry
from caudal.results.answers import Result, one_line, show
from caudal.results.values import json_value, python_values

_ROWS_ON_SCREEN = 50
_MOST_GONE = 20


@contextmanager
def spooled_input() -> Iterator[Path]:
    """Yield a temporary file with all of standard input."""
    with tempfile.NamedTemporaryFile(prefix="caudal-", suffix=".csv") as kept:
        shutil.copyfileobj(sys.stdin.buffer, kept)
        kept.flush()
        yield Path(kept.name)


def print_load(place: str, report: LoadReport, console: Console) -> None:
    """Print what a load did: the version on standard output, the rest on standard error."""
    for skipped in report.skipped:
        console.print(skipped.told(), highlight=False, markup=False, soft_wrap=True)
    print_rejects(report.rejects, console)
    if report.version is None:
        typer.echo(f"{place}: nothing new; the newest version is {report.newest}")
    else:
        typer.echo(f"{place}: {_loaded(report)} in {report.seconds:.2f} s")


def print_part(report: LoadReport | SkippedPart) -> None:
    """Print what became of a part of a stream, at once: from now on it is loaded."""
    if isinstance(report, SkippedPart):
        size, version = report.bytes, report.version
        typer.echo(f"{size:,} bytes of {NAME} skipped: version {version} loaded them")
    elif report.version is not None:
        typer.echo(_loaded(report))


def _loaded(report: LoadReport) -> str:
    rejected = f", {report.rejects.total:,} rejected" if report.rejects.total else ""
    return f"version {report.version}: {_count(report.rows, 'row')}{rejected}"


def versions_table(history: Sequence[VersionSummary | VersionEntry]) -> Table:
    """Return the versions as a table. Rows, files and bytes are those that a version added."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("version", "time (UTC)", "kind", "rows", "files", "MB", "rejected", "load"):
        is_text = name in ("time (UTC)", "kind", "load")
        table.add_column(name, justify="left" if is_text else "right")
    for one in history:
        moment = datetime.fromtimestamp(one.time / 1000, UTC)
        table.add_row(
            f"{one.number}",
            f"{moment:%Y-%m-%d %H:%M:%S}",
            one.kind,
            f"{one.rows:,}",
            f"{one.files:,}",
            f"{one.bytes / 1e6:,.1f}",
            f"{one.rejected:,}",
            one.load[:12],
        )
    return table


def print_changes(contents: Contents, old: Result | None, new: Result, console: Console) -> None:
    """Print an answer; rows that the one before lacked are marked +, rows that are gone -."""
    changed = Changed((), ()) if old is None else changed_rows(old.table, new.table)
    moment = datetime.fromtimestamp(contents.time / 1000, UTC)
    told = "" if old is None else f": {_told(changed)}"
    heading = f"version {contents.number} ({moment:%Y-%m-%d %H:%M:%S} UTC){told}"
    console.print(Text(heading, style="bold"), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ["", *new.table.column_names]:
        table.add_column(Text(one_line(name)), overflow="fold")
    added = set(changed.added)
    for place, row in enumerate(_rows(new)[:_ROWS_ON_SCREEN]):
        mark = "+" if place in added else ""
        table.add_row(Text(mark), *row, style="bold" if mark else "")
    gone = _rows(old) if old is not None else []
    for place in changed.gone[:_MOST_GONE]:
        table.add_row(Text("-"), *gone[place], style="dim")
    console.print(table)
    if len(new) > _ROWS_ON_SCREEN:
        console.print(f"{len(new):,} rows in all", style="dim", highlight=False)


def changes_line(version: int, old: Result | None, new: Result) -> bytes:
    """Return an answer and its changes as one line of JSON."""
    changed = Changed((), ()) if old is None else changed_rows(old.table, new.table)
    gone = [] if old is None else [old.rows()[place] for place in changed.gone]
    line = {"version": version, "rows": new.rows(), "added": list(changed.added), "gone": gone}
    return msgspec.json.encode(json_value(line)) + b"\n"


def _rows(result: Result) -> list[tuple[Text, ...]]:
    columns = [
        [Text(one_line(show(value))) for value in python_values(column)]
        for column in result.table.columns
    ]
    return list(zip(*columns, strict=True))


def _told(changed: Changed) -> str:
    if not changed:
        return "the answer is the same"
    return f"{_count(len(changed.added), 'row')} new or changed, {len(changed.gone):,} gone"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
