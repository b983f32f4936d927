"""`caudal run`, `caudal sql`, `caudal explain`: asking."""

import contextlib
import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from caudal.answers import Answers, Result
from caudal.application import find_application
from caudal.cli.files import whole_file
from caudal.cli.formats import BINARY, Format, encode, json_bytes, write_results
from caudal.cli.progress import watch
from caudal.cli.show import print_rejects, print_result, profile_tables
from caudal.engine.adhoc import ADHOC, run_adhoc, with_adhoc_query
from caudal.engine.choosing import run_with
from caudal.engine.database import parse_bytes
from caudal.engine.explaining import explain_query
from caudal.engine.running import Engine, RunOptions, Sources
from caudal.engine.split import explain_plan
from caudal.errors import UsageError
from caudal.model import Application, ParameterValue, RejectedRow
from caudal.sql.parameters import convert

_LEAST_BATCH_BYTES, _MOST_BATCH_BYTES = 4 << 10, 1 << 30

AppArgument = Annotated[str, typer.Argument(help="A shipped application, or a folder's path.")]
DataOption = Annotated[Path, typer.Option("--data", "-d", help="The folder with the files.")]
ParamOption = Annotated[
    list[str] | None, typer.Option("--param", help="NAME=VALUE for a $NAME of the queries.")
]
FileOption = Annotated[
    list[str] | None,
    typer.Option("--file", help="TABLE=PATH: other files (or a glob) for one table."),
]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="How to write the answers.", show_default="table")
]
OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write a file per query into this folder.")
]
RejectsOption = Annotated[
    Path | None, typer.Option("--rejects", help="Write every rejected row to this CSV file.")
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Fail on the first rejected row.")]
SentimentOption = Annotated[
    str | None,
    typer.Option("--sentiment", help="`lexicon`, or `transformers:DIR` for a local model."),
]
MemoryOption = Annotated[
    str | None,
    typer.Option("--memory-limit", help="Memory for the process, e.g. 1GB; more spills to disk."),
]
EngineOption = Annotated[Engine, typer.Option("--engine", help="What executes the queries.")]
PartitionsOption = Annotated[
    int, typer.Option("--partitions", min=1, max=4096, help="Of the split engine's folds.")
]
BatchSizeOption = Annotated[
    str, typer.Option("--batch-size", help="How much of a file is read at a time.")
]
ProfileOption = Annotated[
    bool, typer.Option("--profile", help="Show rows, bytes and seconds per table and operator.")
]


def run(
    app: AppArgument,
    data: DataOption = Path(),
    query: Annotated[
        list[str] | None, typer.Option("--query", "-q", help="Only this query (repeatable).")
    ] = None,
    param: ParamOption = None,
    file: FileOption = None,
    form: FormatOption = None,
    out: OutOption = None,
    rejects: RejectsOption = None,
    strict: StrictOption = False,
    sentiment: SentimentOption = None,
    memory_limit: MemoryOption = None,
    engine: EngineOption = Engine.EMBEDDED,
    partitions: PartitionsOption = 4,
    batch_size: BatchSizeOption = "8MiB",
    profile: ProfileOption = False,
) -> None:
    """Answer an application's queries over the files of a folder.

    Examples:

    - `caudal run books --data ~/amazon-books`
    - `caudal run movies -d data -q q1 -q q4 --file ratings=ratings_small.csv`
    - `caudal run movies -d data --param country=Chile --format json > answers.json`
    - `caudal run ./my_app -d data --out answers --format parquet --rejects rejects.csv`
    """
    application = find_application(app)
    form = _checked_format(form, out, len(query or application.queries))
    with _reject_file(rejects) as sink:
        options = RunOptions(
            sentiment=sentiment,
            memory_limit=_limit(memory_limit),
            batch_bytes=_batch_bytes(batch_size),
            partitions=partitions,
            strict=strict,
            profile=profile,
            reject_sink=sink,
        )
        sources = _sources(application, data, file)
        parameters = _parameters(application, param)
        with watch(Console(stderr=True)) as progress:
            answers = run_with(
                engine,
                application,
                sources,
                query,
                parameters,
                options=options,
                progress=progress,
            )
        _deliver(application, answers, form, out)


def sql(
    first: Annotated[str, typer.Argument(metavar="[APP] SELECT", help="The application.")],
    second: Annotated[str | None, typer.Argument(metavar="", help="The SELECT.")] = None,
    data: DataOption = Path(),
    file: FileOption = None,
    form: FormatOption = None,
    out: OutOption = None,
    rejects: RejectsOption = None,
    strict: StrictOption = False,
    sentiment: SentimentOption = None,
    memory_limit: MemoryOption = None,
    engine: EngineOption = Engine.EMBEDDED,
    partitions: PartitionsOption = 4,
    batch_size: BatchSizeOption = "8MiB",
    profile: ProfileOption = False,
) -> None:
    """Answer any SELECT, over an application's cleaned tables or over files by name.

    Examples:

    - `caudal sql books "SELECT year, count(*) FROM books GROUP BY year" --data data`
    - `caudal sql "SELECT text, sentiment(text) FROM 'x.csv' LIMIT 5"`
    """
    form = _checked_format(form, out, 1)
    with _reject_file(rejects) as sink:
        options = RunOptions(
            sentiment=sentiment,
            memory_limit=_limit(memory_limit),
            batch_bytes=_batch_bytes(batch_size),
            partitions=partitions,
            strict=strict,
            profile=profile,
            reject_sink=sink,
        )
        if second is None:
            _give({ADHOC: replace(run_adhoc(first, options), title="")}, form, out)
            return
        application = with_adhoc_query(find_application(first), second)
        sources = _sources(application, data, file)
        with watch(Console(stderr=True)) as progress:
            answers = run_with(engine, application, sources, options=options, progress=progress)
        _deliver(application, answers, form, out)


def explain(
    app: AppArgument,
    query: Annotated[str, typer.Argument(help="The query's name, or a SELECT.")],
    param: ParamOption = None,
    engine: EngineOption = Engine.EMBEDDED,
    sql: Annotated[bool, typer.Option("--sql", help="Show the SQL of every stage too.")] = False,
) -> None:
    """Show what a query reads and the operators its rows pass, in order.

    Examples:

    - `caudal explain books q5`
    - `caudal explain books q5 --engine split --sql`
    - `caudal explain books "SELECT count(*) FROM reviews" --engine split`
    """
    application = find_application(app)
    if " " in query.strip():
        application, query = with_adhoc_query(application, query), ADHOC
    parameters = _parameters(application, param)
    if engine is Engine.SPLIT:
        typer.echo(explain_plan(application, query, parameters, sql=sql))
    else:
        typer.echo(explain_query(application, query, parameters))


def _deliver(app: Application, answers: Answers, form: Format, out: Path | None) -> None:
    """The answers, and on standard error whatever else there is to say about them."""
    _give({name: _untitled(result) for name, result in answers.items()}, form, out)
    console = Console(stderr=True, width=None if sys.stderr.isatty() else 160)
    for table in profile_tables(answers) if answers.operators else ():
        console.print(table)
    print_rejects(answers.rejects, console)
    console.print(f"{app.name}: {answers.seconds:.2f} s", highlight=False)


def _untitled(result: Result) -> Result:
    return replace(result, title="") if result.name == ADHOC else result


def _batch_bytes(text: str) -> int:
    size = parse_bytes(text)
    if not _LEAST_BATCH_BYTES <= size <= _MOST_BATCH_BYTES:
        raise UsageError(f"--batch-size {text}: choose from 4KiB to 1GiB")
    return size


def _limit(text: str | None) -> int | None:
    return parse_bytes(text) if text else None


def _sources(app: Application, data: Path, file: list[str] | None) -> Sources:
    if not data.is_dir():
        raise UsageError(f"no folder {data}: give the folder with the files as --data DIR")
    return Sources(data, _overrides(app, file))


def _give(results: Mapping[str, Result], form: Format, out: Path | None) -> None:
    """Write the answers where they were asked for."""
    if out is not None:
        for path in write_results(results, out, form):
            print(path, file=sys.stderr)
    elif form is Format.TABLE:
        console = Console(soft_wrap=False, width=None if sys.stdout.isatty() else 160)
        for result in results.values():
            print_result(result, console)
    elif form is Format.JSON:
        rows = {name: result.rows() for name, result in results.items()}
        sys.stdout.buffer.write(json_bytes(rows))
    else:
        for result in results.values():
            sys.stdout.buffer.write(encode(result, form))
    sys.stdout.flush()


def _checked_format(form: Format | None, out: Path | None, queries: int) -> Format:
    form = form or Format.TABLE
    if out is not None or form in (Format.TABLE, Format.JSON):
        return form
    if queries != 1:
        raise UsageError(
            f"--format {form.value} gives one file per query: add --out DIR, or choose one with -q"
        )
    if form in BINARY and sys.stdout.isatty():
        raise UsageError(f"--format {form.value} is not for a terminal: add --out DIR, or redirect")
    return form


def _pairs(given: list[str] | None, option: str) -> list[tuple[str, str]]:
    pairs = []
    for text in given or ():
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise UsageError(f"{option} {text}: write it as NAME=VALUE")
        pairs.append((name, value))
    return pairs


def _parameters(app: Application, given: list[str] | None) -> dict[str, ParameterValue]:
    return {
        name: convert(name, value, app.parameters.get(name, ""))
        for name, value in _pairs(given, "--param")
    }


def _overrides(app: Application, given: list[str] | None) -> dict[str, list[str]]:
    tables = [table.name for table in app.tables]
    overrides: dict[str, list[str]] = {}
    for table, path in _pairs(given, "--file"):
        if table not in tables:
            raise UsageError(
                f"--file {table}={path}: {app.name} has no table {table!r}; "
                f"its tables are: {', '.join(tables)}"
            )
        overrides.setdefault(table, []).append(path)
    return overrides


@contextlib.contextmanager
def _reject_file(path: Path | None) -> Iterator[Callable[[RejectedRow], None] | None]:
    """A sink for rejected rows that writes them as CSV, or none."""
    if path is None:
        yield None
        return
    with whole_file(path) as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["table", "file", "line", "reason"])
        yield lambda row: writer.writerow([row.table, row.file, row.line, row.reason])
