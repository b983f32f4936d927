"""Output of the commands of datasets."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from caudal.cli.show import print_rejects
from caudal.datasets.contents import VersionSummary
from caudal.datasets.reports import LoadReport
from caudal.datasets.stream_loader import NAME, SkippedPart
from caudal.formats.dataset_replies import VersionEntry


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


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
