"""Answer queries over a dataset: DuckDB reads the Parquet files of a version as views.

The rows are in the order of the files, as they are after reading the CSV files. So the answers are
the same, to the last bit for queries whose rows and sums have an order. What expensive functions
give is kept with the dataset (dataset_computed.py).
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from caudal.datasets.documents import DatasetTable
from caudal.datasets.shelf import Shelf, require_same
from caudal.duck.bind import (
    BoundQuery,
    RunBinding,
    bind_query,
    choose_queries,
    parameter_values,
)
from caudal.duck.database import Connection
from caudal.duck.describe import create_empty, empty_schema
from caudal.duck.kept_bindings import depends_on_tables, make_or_recall
from caudal.embedded.answering import answer_queries
from caudal.embedded.dataset_computed import can_compute, compute_columns
from caudal.embedded.dataset_files import local_files
from caudal.embedded.dataset_tables import app_database, cleaning_digests, sentiment_model
from caudal.embedded.dataset_views import create_views
from caudal.model import LEXICON, Application, ParameterValue, Query
from caudal.results.answers import Answers
from caudal.results.rejects import Rejects
from caudal.run_options import Progress, RunOptions, Silent
from caudal.sql.table_needs import EXPENSIVE


def ask(
    app: Application,
    shelf: Shelf,
    queries: Sequence[str] | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> Answers:
    """Answer the chosen queries (all, if none is named) over a version of a dataset."""
    options, progress = options or RunOptions(), progress or Silent()
    began = time.perf_counter()
    chosen = choose_queries(app, queries, parameters or {})
    head = shelf.contents.head
    require_same(shelf.place, head, app.name, cleaning_digests(app, options))
    with app_database(app, options) as connection:
        bound = _bound(connection, app, head.tables, chosen, parameters or {}, options)
        needed = {table for query in bound for table in query.reads}
        with local_files(shelf, needed) as files:
            create_views(connection, shelf, files)
            with ThreadPoolExecutor(options.threads, thread_name_prefix="caudal") as pool:
                made = compute_columns(connection, pool, shelf, files, bound, options.threads)
                results, operators, failures = answer_queries(
                    connection, pool, bound, options, progress, made.cursor
                )
    seconds = time.perf_counter() - began
    return Answers(results, Rejects(), (), operators, seconds, failures)


def _bound(
    connection: Connection,
    app: Application,
    tables: Sequence[DatasetTable],
    queries: Sequence[Query],
    given: Mapping[str, ParameterValue],
    options: RunOptions,
) -> tuple[BoundQuery, ...]:
    """Bind queries over the tables of a dataset, or recall what an earlier run has bound."""
    names = [table.name for table in tables]

    model = sentiment_model(app, options)

    def make() -> RunBinding:
        values = parameter_values(app, given)
        return RunBinding((), bind_over(connection, tables, queries, values, model))

    if options.kept_bindings is None:
        return make().queries
    asked = ("dataset", tables, app.queries, app.parameters, queries, given, model)
    return make_or_recall(
        options.kept_bindings,
        RunBinding,
        asked,
        make,
        lambda made: depends_on_tables(connection, made.queries, names),
    ).queries


def bind_over(
    connection: Connection,
    tables: Sequence[DatasetTable],
    queries: Sequence[Query],
    values: Mapping[str, ParameterValue],
    model: str = "",
) -> tuple[BoundQuery, ...]:
    """Check queries over the tables of a dataset, which include that of rejected rows.

    Values of the lexicon are computed early; without a model, or with another one, none are.
    """
    schemas = {table.name: dict(table.columns) for table in tables}
    moment = datetime.now(UTC)
    with empty_schema(connection) as cursor:
        for name, schema in schemas.items():
            create_empty(cursor, name, schema)

        def bound(query: Query) -> BoundQuery:
            if model == LEXICON and _calls_expensive(query):
                found = bind_query(cursor, query, values, schemas, moment)
                if found.seen.computed_columns and can_compute(found, tables):
                    return found
            return bind_query(cursor, query, values, schemas, moment, early=False)

        return tuple(map(bound, queries))


def _calls_expensive(query: Query) -> bool:
    """Return whether a query may call an expensive function; the parser is loaded only then."""
    return any(name in query.sql.lower() for name in EXPENSIVE)
