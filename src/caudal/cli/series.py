"""`caudal series ...`: time series in a store."""

import sys
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from caudal.answers import Result
from caudal.cli.files import whole_file
from caudal.cli.formats import BINARY, Format, encode
from caudal.cli.series_show import (
    print_ingest,
    print_months,
    print_values,
    status_table,
    write_rejects,
)
from caudal.errors import UsageError
from caudal.series import (
    Catalog,
    consolidate_all,
    consolidate_month,
    find_config,
    read_series,
    survey,
)
from caudal.series import ingest as ingest_source
from caudal.series.plotting import draw, plot_format
from caudal.store.opening import open_store
from caudal.store.s3_settings import S3Settings

series = typer.Typer(
    name="series",
    help="Time series in a store: an event log and monthly projections, never half updated.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
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
    str | None, typer.Option("--from", metavar="DATE", help="The first day, as 2025-08-01.")
]
ToOption = Annotated[str | None, typer.Option("--to", metavar="DATE", help="The last day.")]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="VERSION|DATE", help="As it was known then: a version, or a day's end."
    ),
]


@series.command()
def ingest(
    config: ConfigArgument,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The source to read.")],
    store: StoreOption,
    consolidate: Annotated[
        bool,
        typer.Option("--consolidate/--no-consolidate", help="Bring stale months up to date too."),
    ] = True,
    rejects: Annotated[
        Path | None, typer.Option("--rejects", help="Write every rejected cell to this CSV file.")
    ] = None,
) -> None:
    """Add what is new in a file as one version, then consolidate the months that became stale.

    Example: `caudal series ingest bcra_infomondia infomondia.xlsx --store data`
    """
    described, catalog = find_config(config), _catalog(store)
    outcome = ingest_source(catalog, described, file)
    if rejects is not None:
        write_rejects(outcome.rejected, rejects)
    print_ingest(described.dataset_id, outcome, rejects)
    if consolidate:
        print_months(consolidate_all(catalog, described))
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
        bool, typer.Option("--force", help="Rebuild even what is fresh, from the event log.")
    ] = False,
) -> None:
    """Bring one month, or all that are stale or unfinished, up to date with the event log.

    Examples:

    - `caudal series consolidate bcra_infomondia --store data`
    - `caudal series consolidate bcra_infomondia --store data --year 2025 --month 8 --force`
    """
    described, catalog = find_config(config), _catalog(store)
    if (year is None) != (month is None):
        raise UsageError("give --year and --month together, or neither for all months")
    if year is None or month is None:
        print_months(consolidate_all(catalog, described, force=force))
    elif every:
        raise UsageError("--all is for every month: leave --year and --month out")
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
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TABLE,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write to this file.")
    ] = None,
) -> None:
    """The values of one series: the newest, or as they were known at a version or a day.

    Examples:

    - `caudal series read bcra_infomondia BCRA_RESERVAS_USD_M_D --store data --from 2025-08-01`
    - `caudal series read my.toml X --store data --as-of 3 --format csv -o x.csv`
    """
    result = _read(config, code, store, first, last, as_of)
    if out is not None:
        with whole_file(out) as file:
            file.write(encode(result, Format.CSV if form is Format.TABLE else form))
        typer.echo(str(out), err=True)
    elif form is Format.TABLE:
        print_values(result, Console(width=None if sys.stdout.isatty() else 160))
    elif form in BINARY and sys.stdout.isatty():
        raise UsageError(f"--format {form.value} is not for a terminal: add --out FILE")
    else:
        sys.stdout.buffer.write(encode(result, form))


@series.command()
def status(config: ConfigArgument, store: StoreOption) -> None:
    """Every month: how far its consolidation is, from which versions, fresh or stale.

    Example: `caudal series status bcra_infomondia --store data`
    """
    described, catalog = find_config(config), _catalog(store)
    months = list(survey(catalog, described.dataset_id))
    head = catalog.log(described.dataset_id).head()
    if head is None:
        typer.echo(f"{described.dataset_id}: no events yet: run `caudal series ingest`")
        return
    Console(width=None if sys.stdout.isatty() else 160).print(status_table(months))
    counts = Counter(str(one.freshness) for one in months)
    told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    typer.echo(f"{described.dataset_id}: version {head.version} of {head.vintage_date}; {told}")
    if any(not one.is_tidy for one in months):
        typer.echo("run `caudal series consolidate` to bring them up to date")


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
    result = _read(config, code, store, first, last, as_of)
    if not len(result):
        raise UsageError(f"{code} has no values there: ingest some, or choose other dates")
    with whole_file(out) as file:
        draw(result.table, f"{find_config(config).provider}  {code}", file, form)
    typer.echo(str(out), err=True)


def _catalog(store: str) -> Catalog:
    s3 = S3Settings.from_environment() if store.lower().startswith("s3:") else None
    return Catalog(open_store(store, s3=s3))


def _read(
    config: str, code: str, store: str, first: str | None, last: str | None, as_of: str | None
) -> Result:
    found = read_series(
        _catalog(store),
        find_config(config),
        code,
        first=_day(first, "--from"),
        last=_day(last, "--to"),
        as_of=int(as_of) if as_of and as_of.isdecimal() else _day(as_of, "--as-of"),
    )
    for note in found.notes:
        typer.echo(f"note: {note}: run `caudal series consolidate`", err=True)
    return Result(code, "", found.table)


def _day(text: str | None, option: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise UsageError(f"{option} {text}: write a day as 2025-08-31") from error
