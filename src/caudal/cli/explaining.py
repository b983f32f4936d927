"""The command that explains queries: `caudal explain`."""

from typing import Annotated

import typer

from caudal.application import find_application
from caudal.application.adhoc import files_application
from caudal.cli.dataset_choice import chosen_dataset
from caudal.cli.options import (
    AsOfOption,
    EngineOption,
    FromOption,
    ParamOption,
    ReadingOptions,
    parameter_values,
    with_reading,
)
from caudal.errors import UsageError
from caudal.model import ADHOC
from caudal.run_options import Engine
from caudal.sql.adhoc import asker_mistakes, bind_values, with_adhoc_query
from caudal.sql.graph import PlanFormat


@with_reading
def explain(
    app: Annotated[
        str, typer.Argument(metavar="APP|SELECT", help="The application, or a SELECT over files.")
    ],
    reading: ReadingOptions,
    query: Annotated[
        str | None, typer.Argument(help="The name of a query, or a SELECT, of the application.")
    ] = None,
    param: ParamOption = None,
    engine: EngineOption = Engine.EMBEDDED,
    sql: Annotated[bool, typer.Option("--sql", help="Show the SQL of every stage too.")] = False,
    form: Annotated[
        PlanFormat, typer.Option("--format", help="Text, or a graph for Mermaid or Graphviz.")
    ] = PlanFormat.TEXT,
    source: FromOption = None,
    as_of: AsOfOption = None,
) -> None:
    """Show what a query reads and its operators, in order.

    Examples:

    - `caudal explain books q5`
    - `caudal explain books q5 --engine split --sql`
    - `caudal explain books "SELECT count(*) FROM reviews" --engine split`
    - `caudal explain books q5 --engine split --format dot | dot -Tsvg > q5.svg`
    - `caudal explain books q5 --from shelf`
    - `caudal explain "SELECT count(*) FROM 'x.csv'" --engine split`
    """
    is_split = engine is not Engine.EMBEDDED  # Spark runs the same plan
    if sql and not (is_split and form is PlanFormat.TEXT):
        raise UsageError("--sql is for --engine split --format text")
    application = find_application(app) if query is not None else None
    values = parameter_values(application.parameters if application else {}, param)
    if application is None or query is None:
        bound = bind_values(app, values)
        application = files_application(bound, None, engine, reading.reading())
        query, values = ADHOC, {}
    elif " " in query.strip():
        bound = bind_values(query, values, application.parameters)
        application, query, values = with_adhoc_query(application, bound), ADHOC, {}
    if source is not None or as_of is not None:
        if engine is not Engine.EMBEDDED or form is not PlanFormat.TEXT:
            raise UsageError("a dataset is explained as text, for the embedded engine")
        from caudal.embedded.dataset_explain import explain_dataset

        with asker_mistakes(application):
            typer.echo(explain_dataset(application, chosen_dataset(source, as_of), query, values))
        return
    from caudal.duck.explain import explain_split
    from caudal.embedded.explain import explain_query

    with asker_mistakes(application):
        if is_split:
            explained = explain_split(application, query, values, form, sql=sql)
        else:
            explained = explain_query(application, query, values, form)
    typer.echo(explained)
