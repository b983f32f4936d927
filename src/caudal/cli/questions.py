"""Commands that answer queries: `caudal run`, `sql`."""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from caudal.application import find_application
from caudal.application.adhoc import files_application, notes
from caudal.cli.dataset_choice import ask_dataset, chosen_dataset, require_cluster
from caudal.cli.destination import Destination
from caudal.cli.engine_choice import chosen_engine
from caudal.cli.gateways import (
    CaOption,
    GatewayOptions,
    OptionalGatewayOption,
    PatienceOption,
    TokenFileOption,
)
from caudal.cli.given_select import given_select, knowing_applications
from caudal.cli.options import (
    AppArgument,
    AsOfOption,
    DatasetOption,
    FromOption,
    ParamOption,
    ProgressStoreOption,
    QueryOptions,
    ResumeOption,
    parameter_values,
    with_asking,
)
from caudal.cli.output import (
    checked_destination,
    deliver,
    ended_before_output,
    give_stream,
    reject_file,
    report,
    require_all,
)
from caudal.cli.progress import watch
from caudal.cli.report_file import require_writable
from caudal.errors import UsageError
from caudal.local.engines import run_with
from caudal.model import ADHOC, Application, ParameterValue
from caudal.results.answers import Answers, one_line
from caudal.run_options import Engine
from caudal.sql.adhoc import asker_mistakes, bind_values, with_adhoc_query


@with_asking
def run(
    app: AppArgument,
    asking: QueryOptions,
    query: Annotated[
        list[str] | None, typer.Option("--query", "-q", help="Only this query (repeatable).")
    ] = None,
    param: ParamOption = None,
    store: ProgressStoreOption = None,
    resume: ResumeOption = False,
    source: FromOption = None,
    as_of: AsOfOption = None,
    report_file: Annotated[
        Path | None,
        typer.Option("--report", help="Also write plans, answers and charts as one HTML file."),
    ] = None,
) -> None:
    """Answer an application's queries over the files of a folder, or over a dataset.

    Examples:

    - `caudal run books --data ~/amazon-books`
    - `caudal run movies -d data -q q1 -q q4 --file ratings=ratings_small.csv`
    - `caudal run movies -d data --param country=Chile --format json > answers.json`
    - `caudal run ./my_app -d data --out answers --format parquet --rejects rejects.csv`
    - `caudal run books -d data --engine split --store progress --resume`
    - `caudal run books --from shelf --as-of 3`
    - `caudal run books -d /shared/data --engine spark --remote sc://spark:15002`
    """
    require_writable(report_file)
    application = find_application(app)
    names = query or [one.name for one in application.queries]
    destination = checked_destination(asking.form, asking.out, len(names))
    values = parameter_values(application.parameters, param)
    if source is not None or as_of is not None:
        if store is not None:
            raise UsageError("--store is for reading files: leave it out with --from")
        dataset = chosen_dataset(source, as_of, asking)
        answers = ask_dataset(application, dataset, query, values, asking)
        _save_report(report_file, application, answers)
        deliver(application.name, answers, destination, quiet=asking.quiet)
        require_all(answers.failures)
        return
    is_plain = report_file is None and store is None and not resume
    if is_plain and _streams(asking, len(set(names))):
        _answer_one(application, names[0], values, asking, destination)
        return
    with (
        chosen_engine(asking.engine, store, resume=resume) as answer,
        reject_file(asking.rejects) as sink,
    ):
        options = replace(asking.run_options(sink), records=report_file is not None)
        sources = asking.sources(application)
        with watch(Console(stderr=True), quiet=asking.quiet) as progress:
            answers = answer(
                application, sources, query, values, options=options, progress=progress
            )
        _save_report(report_file, application, answers, values)
        deliver(application.name, answers, destination, quiet=asking.quiet)
    require_all(answers.failures)


def _save_report(
    path: Path | None,
    application: Application,
    answers: Answers,
    values: Mapping[str, ParameterValue] | None = None,
) -> None:
    """Write the report of a run, if it was asked for; without values also without plans."""
    if path is None:
        return
    from caudal.cli.report_page import run_data, write_report
    from caudal.embedded.explain import query_graph
    from caudal.jobs.plan_pictures import graph_reply

    plans = {
        name: graph_reply(query_graph(application, name, values or {}), one.title, {}, {})
        for name, one in (answers.results.items() if values is not None else ())
    }
    write_report(path, run_data(application.name, answers, plans))


def _streams(asking: QueryOptions, queries: int) -> bool:
    """Return whether rows can be written while the query runs."""
    embedded = asking.engine is Engine.EMBEDDED and not asking.profile
    return embedded and queries == 1


def _answer_one(
    application: Application,
    query: str,
    values: Mapping[str, ParameterValue],
    asking: QueryOptions,
    destination: Destination,
) -> None:
    """Answer one query with the embedded engine; write its rows while they are computed."""
    from caudal.embedded.engine import stream

    with reject_file(asking.rejects) as sink, contextlib.ExitStack() as running:
        options = asking.run_options(sink)
        sources = asking.sources(application)
        shown = running.enter_context(contextlib.ExitStack())
        progress = shown.enter_context(watch(Console(stderr=True), quiet=asking.quiet))
        result = running.enter_context(
            stream(application, sources, query, values, options, progress)
        )
        parts = ended_before_output(result.parts, shown, destination)
        give_stream(replace(result, parts=parts), destination, quiet=asking.quiet)
        report(application.name, result.rejects, quiet=asking.quiet)


@with_asking
def sql(
    asking: QueryOptions,
    first: Annotated[
        str | None,
        typer.Argument(metavar="APP|SELECT", help="The application, or a SELECT over files."),
    ] = None,
    second: Annotated[
        str | None, typer.Argument(metavar="SELECT", help="A SELECT over the application.")
    ] = None,
    query_file: Annotated[
        Path | None,
        typer.Option("--query-file", "-f", metavar="FILE", help="A file with the SELECT, or -."),
    ] = None,
    param: ParamOption = None,
    gateway: OptionalGatewayOption = None,
    token_file: TokenFileOption = None,
    patience: PatienceOption = 60.0,
    ca: CaOption = None,
    source: FromOption = None,
    as_of: AsOfOption = None,
    named: DatasetOption = None,
) -> None:
    """Answer any SELECT, over an application's cleaned tables or over files by name.

    Caudal reads CSV files like an application's files: it infers column types, and rejects and
    counts rows that do not fit. DuckDB reads Parquet and JSON files.

    Examples:

    - `caudal sql books "SELECT year, count(*) FROM books GROUP BY year" --data data`
    - `caudal sql "SELECT text, sentiment(text) FROM 'x.csv' LIMIT 5"`
    - `caudal sql "SELECT * FROM 'x.csv' WHERE country = $country" --param country=Peru`
    - `caudal sql books -f query.sql --data data`, or with the SELECT from a pipe
    - `caudal sql books "SELECT count(*) FROM reviews" --data data --gateway http://one:8421`
    - `caudal sql books "SELECT reason, count(*) FROM rejects GROUP BY 1" --from shelf`
    - `caudal sql books "SELECT count(*) FROM reviews" --gateway http://one:8421 --dataset shelf`
    """
    destination = checked_destination(asking.form, asking.out, 1)
    app, select = given_select(first, second, query_file)
    dataset = None
    if named is not None:
        require_cluster(app, source)
    elif source is not None or as_of is not None:
        if app is None or gateway is not None:
            raise UsageError("--from asks a dataset here: caudal sql APP 'SELECT ...' --from DIR")
        dataset = chosen_dataset(source, as_of, asking)
    if app is not None:
        application = find_application(app)
        values = parameter_values(application.parameters, param)
        bound = bind_values(select, values, application.parameters)
        application = with_adhoc_query(application, bound)
    else:
        engine = asking.engine if gateway is None else Engine.SPLIT
        application = _over_files(select, param, asking, engine)
    with knowing_applications(application), asker_mistakes(application):
        if gateway is not None or named is not None:
            from caudal.cli.submit import sql_on_cluster

            way = GatewayOptions(gateway, token_file, patience, ca)
            sql_on_cluster(application, asking, way, named, as_of)
        elif dataset is not None:
            answers = ask_dataset(application, dataset, None, {}, asking)
            deliver(application.name, answers, destination, quiet=asking.quiet)
            require_all(answers.failures)
        elif _streams(asking, 1):
            _answer_one(application, ADHOC, {}, asking, destination)
        else:
            _answer_whole(application, asking, destination)


def _over_files(
    select: str, param: list[str] | None, asking: QueryOptions, engine: Engine
) -> Application:
    """Return an application of a SELECT over files by name."""
    if asking.file:
        raise UsageError("--file is for an application's tables: name the file in the SELECT")
    bound = bind_values(select, parameter_values({}, param))
    application = files_application(bound, asking.data, engine, asking.reading.reading())
    for note in notes(application) if not asking.quiet else ():
        typer.echo(f"note: {one_line(note)}", err=True)
    return application


def _answer_whole(application: Application, asking: QueryOptions, destination: Destination) -> None:
    with reject_file(asking.rejects) as sink:
        options = asking.run_options(sink)
        sources = asking.sources(application)
        with watch(Console(stderr=True), quiet=asking.quiet) as progress:
            answers = run_with(
                asking.engine, application, sources, options=options, progress=progress
            )
        deliver(application.name, answers, destination, quiet=asking.quiet)
