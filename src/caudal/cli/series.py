"""The `caudal series` commands: time series in a store."""

import re
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from caudal.cli.consoles import output_console
from caudal.cli.files import whole_file
from caudal.cli.formats import BINARY, SCREEN, Format, encode
from caudal.cli.series_show import (
    datasets_table,
    print_ingest,
    print_months,
    print_values,
    status_table,
    write_rejects,
)
from caudal.cli.series_store import open_catalog
from caudal.errors import UsageError
from caudal.results.answers import Result
from caudal.series import (
    Catalog,
    Freshness,
    IngestOutcome,
    MonthStatus,
    SeriesConfig,
    SeriesRead,
    consolidate_each,
    consolidate_month,
    find_config,
    list_datasets,
    read_series,
    survey,
    vacuum_series,
)
from caudal.series import ingest as ingest_source
from caudal.series.plotting import draw, plot_format
from caudal.series.sources import NoObservationsError, require_source
from caudal.sizes import parse_seconds

_VERSION = re.compile(r"[0-9]{1,9}\Z")
_SHOWN = 40  # characters of an argument in a message

series = typer.Typer(
    name="series",
    help="Manage time series in a store: an event log and atomically updated monthly projections.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
)

ConfigArgument = Annotated[
    str, typer.Argument(metavar="CONFIG", help="A dataset's TOML file, or a shipped example.")
]
SeriesArgument = Annotated[
    str, typer.Argument(metavar="SERIES", help="The series' internal_series_code.")
]
StoreOption = Annotated[
    str,
    typer.Option("--store", envvar="CAUDAL_STORE", help="DIR or s3://bucket/prefix."),
]
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="DATE", help="The first day, such as 2025-08-01.")
]
ToOption = Annotated[str | None, typer.Option("--to", metavar="DATE", help="The last day.")]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="VERSION|DATE",
        help="Values as known at a version, or at the end of a day.",
    ),
]


@series.command()
def ingest(
    config: ConfigArgument,
    store: StoreOption,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="The source to read; the url of CONFIG if left out."),
    ] = None,
    consolidate: Annotated[
        bool,
        typer.Option("--consolidate/--no-consolidate", help="Also update stale months."),
    ] = True,
    rejects: Annotated[
        Path | None, typer.Option("--rejects", help="Write every rejected cell to this CSV file.")
    ] = None,
) -> None:
    """Add the new data of a source as one version, then consolidate the months that became stale.

    FILE is a file, or an address (https://…) if CONFIG says `kind = "http"`. An address that has
    not changed since the last time is not read again.

    Examples:

    - `caudal series ingest bcra_infomondia infomondia.xlsx --store data`
    - `caudal series ingest my.toml https://example.org/rates.csv --store data`
    """
    described = find_config(config)
    source = require_source(described, file)
    catalog = open_catalog(store, makes=True, changes=True)
    outcome = _ingest(catalog, described, source, rejects)
    if consolidate:
        _consolidate(catalog, described)
    elif outcome.months:
        typer.echo("not consolidated yet: run `caudal series consolidate`")


@series.command()
def consolidate(
    config: ConfigArgument,
    store: StoreOption,
    year: Annotated[int | None, typer.Option("--year", min=1, max=9999)] = None,
    month: Annotated[int | None, typer.Option("--month", min=1, max=12)] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every month that is stale or unfinished (the default).")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Rebuild fresh months too, from the event log.")
    ] = False,
) -> None:
    """Update one month, or all stale or unfinished months, from the event log.

    Examples:

    - `caudal series consolidate bcra_infomondia --store data`
    - `caudal series consolidate bcra_infomondia --store data --year 2025 --month 8 --force`
    """
    if (year is None) != (month is None):
        raise UsageError("give --year and --month together, or neither for all months")
    if every and year is not None:
        raise UsageError("--all is for every month: leave --year and --month out")
    described, catalog = find_config(config), open_catalog(store, changes=True)
    if year is None or month is None:
        _consolidate(catalog, described, force=force)
    else:
        print_months([consolidate_month(catalog, described, year, month, force=force)])


@series.command()
def read(
    config: ConfigArgument,
    code: SeriesArgument,
    store: StoreOption,
    first: FromOption = None,
    last: ToOption = None,
    as_of: AsOfOption = None,
    form: Annotated[Format, typer.Option("--format", help="The output format.")] = Format.TABLE,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write to this file.")
    ] = None,
) -> None:
    """Show the values of one series: the newest, or as known at a version or a day.

    Examples:

    - `caudal series read bcra_infomondia BCRA_RESERVAS_USD_M_D --store data --from 2025-08-01`
    - `caudal series read my.toml X --store data --as-of 3 --format csv -o x.csv`
    """
    started = perf_counter()
    found = _read(find_config(config), code, store, first, last, as_of)
    for note in found.notes:
        typer.echo(f"note: {_with_remedy(note, as_of)}", err=True)
    result = Result(code, "", found.table, perf_counter() - started)
    if out is not None:
        with whole_file(out) as file:
            file.writelines(encode(result, form))
        typer.echo(str(out), err=True)
    elif form in SCREEN:
        print_values(result, output_console(), form)
    elif form in BINARY and sys.stdout.isatty():
        raise UsageError(f"--format {form.value} cannot go to a terminal: add --out FILE")
    else:
        sys.stdout.buffer.writelines(encode(result, form))


@series.command("list")
def list_series(store: StoreOption) -> None:
    """List the datasets of a store: versions, months, series.

    Example: `caudal series list --store data`
    """
    found = list_datasets(open_catalog(store))
    if not found:
        typer.echo("no dataset in this store: `caudal series ingest` makes one")
        return
    output_console().print(datasets_table(found))


@series.command()
def status(
    config: ConfigArgument,
    store: StoreOption,
    state: Annotated[
        list[Freshness] | None, typer.Option("--state", help="Only months in this state.")
    ] = None,
    year: Annotated[int | None, typer.Option("--year", min=1, max=9999)] = None,
    month: Annotated[int | None, typer.Option("--month", min=1, max=12)] = None,
) -> None:
    """Show for every month its consolidation state, its versions, and whether it is fresh.

    Examples:

    - `caudal series status bcra_infomondia --store data`
    - `caudal series status bcra_infomondia --store data --state stale --state missing --year 2025`
    """
    described, catalog = find_config(config), open_catalog(store)
    months = list(survey(catalog, described.dataset_id))
    head = catalog.log(described.dataset_id).head()
    if head is None:
        typer.echo(_no_events(described))
        return
    shown = [one for one in months if _is_chosen(one, state, year, month)]
    if shown:
        output_console().print(status_table(shown))
    else:
        typer.echo(f"none of {len(months)} months is like that")
    counts = Counter(str(one.freshness) for one in months)
    told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    typer.echo(f"{described.dataset_id}: version {head.version} of {head.vintage_date}; {told}")
    if any(not one.is_tidy for one in months):
        typer.echo("run `caudal series consolidate` to bring them up to date")


@series.command()
def vacuum(
    config: ConfigArgument,
    store: StoreOption,
    keep: Annotated[
        str, typer.Option("--keep", help="Keep the manifests of this time: 30d.")
    ] = "30d",
) -> None:
    """Delete old manifests of consolidations. Values, versions and revisions all stay.

    Examples:

    - `caudal series vacuum bcra_infomondia --store data`
    - `caudal series vacuum bcra_infomondia --store data --keep 7d`
    """
    described, seconds = find_config(config), parse_seconds(keep)
    catalog = open_catalog(store, changes=True)
    report = vacuum_series(catalog, described.dataset_id, seconds)
    told = f"deleted {report.manifests:,} manifests of {report.months:,} months"
    typer.echo(f"{described.dataset_id}: {told if report.manifests else 'nothing to delete'}")


@series.command()
def plot(
    config: ConfigArgument,
    code: SeriesArgument,
    store: StoreOption,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A .png or .svg file.")],
    first: FromOption = None,
    last: ToOption = None,
    as_of: AsOfOption = None,
) -> None:
    """Draw one series (needs matplotlib: `pip install 'caudal[plot]'`).

    Example: `caudal series plot bcra_reservas BCRA_RESERVAS_USD_M_D --store data -o reserves.png`
    """
    form = plot_format(out)
    described = find_config(config)
    found = _read(described, code, store, first, last, as_of)
    if not found.table.num_rows:
        remedy = _with_remedy(found.notes[0], as_of) if found.notes else "choose other dates"
        raise UsageError(f"{code} has no values there: {remedy}")
    for note in found.notes:
        typer.echo(f"note: {_with_remedy(note, as_of)}", err=True)
    with whole_file(out) as file:
        draw(found.table, f"{described.provider}  {code}", file, form)
    typer.echo(str(out), err=True)


def _is_chosen(
    found: MonthStatus, states: list[Freshness] | None, year: int | None, month: int | None
) -> bool:
    return (
        (not states or found.freshness in states)
        and year in (None, found.month.year)
        and month in (None, found.month.month)
    )


def _ingest(
    catalog: Catalog, described: SeriesConfig, source: str, rejects: Path | None
) -> IngestOutcome:
    """Ingest and print the outcome. Open the rejects file first, so that its errors come early."""
    if rejects is None:
        outcome = ingest_source(catalog, described, source)
        print_ingest(described.dataset_id, outcome, None)
        return outcome
    with whole_file(rejects) as file:
        try:
            outcome = ingest_source(catalog, described, source)
        except NoObservationsError as error:
            write_rejects(error.rejected, file)
            failure = error
        else:
            print_ingest(described.dataset_id, outcome, rejects)
            write_rejects(outcome.rejected, file)
            return outcome
    raise failure


def _consolidate(catalog: Catalog, described: SeriesConfig, *, force: bool = False) -> None:
    """Print the outcome of each month, then raise the first failure."""
    ended = consolidate_each(catalog, described, force=force)
    if ended.done or not ended.errors:
        print_months(ended.done)
    ended.outcomes()


def _read(
    described: SeriesConfig,
    code: str,
    store: str,
    first: str | None,
    last: str | None,
    as_of: str | None,
) -> SeriesRead:
    begin, end, known = _day(first, "--from"), _day(last, "--to"), _as_of(as_of)
    if begin and end and begin > end:
        raise UsageError(f"--from {begin} is after --to {end}: swap them")
    described.find(code)
    catalog = open_catalog(store)
    if catalog.log(described.dataset_id).head() is None:
        raise UsageError(_no_events(described))
    return read_series(catalog, described, code, first=begin, last=end, as_of=known)


def _no_events(described: SeriesConfig) -> str:
    return f"{described.dataset_id}: no events yet in this store: run `caudal series ingest`"


def _with_remedy(note: str, as_of: str | None) -> str:
    """Add the remedy to a note. With `as_of` there is none: values come from the events."""
    return note if as_of else f"{note}: run `caudal series consolidate`"


def _as_of(text: str | None) -> int | date | None:
    if text is None:
        return None
    if _VERSION.match(text):
        return int(text)
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"--as-of {_short(text)}: give a version number, or a day as 2025-08-01"
        ) from error


def _day(text: str | None, option: str) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{option} {_short(text)}: write a day as 2025-08-31") from error


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
