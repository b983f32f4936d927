"""Plans a run of some queries: the stages of the queries, and how tables are cleaned.

The plan is data and travels as JSON. To execute it, nothing else of the application is needed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb

from caudal.duck.bind import choose_queries, parameter_values
from caudal.duck.binder import DuckDBBinder
from caudal.duck.containment import Excess, contained, is_of_memory
from caudal.duck.database import open_database
from caudal.duck.dataset_tables import bind_app_tables
from caudal.duck.describe import create_empty, describe, empty_schema, read_by
from caudal.duck.functions import RETURN_TYPES, register_functions
from caudal.duck.reach import require_own_relations
from caudal.duck.table_sql import bind_table, make_cleaning, without_reject
from caudal.errors import ApplicationError, CaudalError, QueryError
from caudal.files.cleaning import Cleaning, Wanted
from caudal.jobs.plan import JobPlan, LoadTables, TableMap, prefilter_keys
from caudal.kernels.sentiment import SentimentModel
from caudal.model import Application, ParameterValue, Query, Table
from caudal.sql.parameters import bind_parameters
from caudal.sql.planner import Hint, Plan, RefusedQueryError, Scan, plan
from caudal.sql.quoting import quote
from caudal.sql.table_needs import KeyMembership, Prefilter, VisibleRows

Schemas = Mapping[str, Mapping[str, str]]  # table -> its columns with DuckDB's types

_PLANNING_BYTES = 1 << 30  # memory of other threads counts too, such as bodies of requests
_PLANNING_SECONDS = 60.0


def make_plan(
    app: Application,
    queries: Sequence[str] | None,
    parameters: Mapping[str, ParameterValue],
    model: SentimentModel,
    moment: datetime | None = None,
    *,
    trusted: bool = True,
    stored: Schemas | None = None,
) -> JobPlan:
    """Plan the chosen queries of an application. `moment` is the value of now(); None: the present.

    `stored` are the tables of a dataset, whose rows are clean; None: the application's own.

    SQL that is not trusted may read only the tables of its application; this is checked before it
    is bound.
    """
    chosen = choose_queries(app, queries, parameters)
    values = parameter_values(app, parameters)

    asked = _AskedPlan(app, chosen, values, model, moment or datetime.now(UTC))

    def bound(cursor: duckdb.DuckDBPyConnection) -> JobPlan:
        if not trusted:
            _require_own_tables(cursor, app, chosen, values, stored or {})
        return _split_plan(cursor, asked, stored)

    return _within_limits(model, bound)


def make_load_plan(
    app: Application, tables: Collection[str], model: SentimentModel, *, trusted: bool = True
) -> JobPlan:
    """Plan a load of some tables into a dataset, which has all tables of the application."""

    def bound(cursor: duckdb.DuckDBPyConnection) -> JobPlan:
        if not trusted:
            _require_own_tables(cursor, app, (), {}, {})
        found = bind_app_tables(cursor, app.tables, app.sentiment)
        maps = tuple(TableMap(one, ()) for name, one in found.cleanings.items() if name in tables)
        nothing = Plan({}, (), (), ())
        return JobPlan(nothing, maps, (), {}, LoadTables(found.tables, found.made_by))

    return _within_limits(model, bound)


def _within_limits(
    model: SentimentModel, plan_with: Callable[[duckdb.DuckDBPyConnection], JobPlan]
) -> JobPlan:
    """Plan on a database without tables. Raise QueryError if that takes too much."""
    with open_database(model, contained=True) as connection, empty_schema(connection) as cursor:
        # Binding computes constants: repeat('x', 2000000000) is one, and takes 4 GiB.
        with contained(cursor.interrupt, _PLANNING_BYTES, _PLANNING_SECONDS) as call:
            try:
                return plan_with(cursor)
            except (CaudalError, MemoryError) as error:
                if call.excess is None and not is_of_memory(error):
                    raise
        what = "memory" if call.excess is not Excess.TIME else "time"
        raise QueryError(f"the constants of a query need too much {what} to be computed")


def _require_own_tables(
    cursor: duckdb.DuckDBPyConnection,
    app: Application,
    chosen: tuple[Query, ...],
    values: Mapping[str, ParameterValue],
    stored: Schemas,
) -> None:
    """Refuse SQL that reads other relations. Text that is no SELECT is refused when bound."""
    texts = [(table.origin, table.sql) for table in app.tables]
    texts += [(query.origin, bind_parameters(query.sql, values, query.origin)) for query in chosen]
    tables = ("raw", *(table.name for table in app.tables), *stored)
    for origin, sql in texts:
        try:
            statements = cursor.extract_statements(sql)
            if [one.type for one in statements] == [duckdb.StatementType.SELECT]:
                require_own_relations(cursor, sql, tables)
        except duckdb.Error:
            continue
        except QueryError as error:
            raise ApplicationError(f"{origin}: {error}") from None


@dataclass(frozen=True)
class _AskedPlan:
    """What is planned, and the moment that is the value of now()."""

    app: Application
    chosen: tuple[Query, ...]
    values: Mapping[str, ParameterValue]
    model: SentimentModel
    moment: datetime


def _split_plan(
    cursor: duckdb.DuckDBPyConnection, asked: _AskedPlan, stored: Schemas | None
) -> JobPlan:
    app, chosen, values = asked.app, asked.chosen, asked.values
    if stored is None:
        cleaned: Schemas = {table.name: bind_table(cursor, table) for table in app.tables}
    else:
        cleaned = stored
        for name, schema in stored.items():
            create_empty(cursor, name, schema)
    texts = {query.name: bind_parameters(query.sql, values, query.origin) for query in chosen}
    names = {
        query.name: tuple(name for name, _ in describe(cursor, texts[query.name], query.origin))
        for query in chosen
    }
    schemas = stored or {name: without_reject(schema) for name, schema in cleaned.items()}
    try:
        made = _planned(texts, schemas, asked.model, asked.moment)
    except RefusedQueryError as error:
        origin = next(query.origin for query in chosen if query.name == error.query)
        raise ApplicationError(f"{origin}: {error.reason}") from error
    if stored is not None:
        scanned = dict.fromkeys(scan.table for scan in made.scans)
        named = [(name, schema) for name, schema in stored.items() if name in scanned]
        maps = tuple(_stored_map(cursor, name, schema, made) for name, schema in named)
        return JobPlan(made, maps, chosen, names).without_hints()
    maps = tuple(
        _table_map(cursor, table, cleaned[table.name], made)
        for table in app.tables
        if any(scan.table == table.name for scan in made.scans)
    )
    return JobPlan(made, maps, chosen, names)


def _planned(
    texts: Mapping[str, str],
    schemas: Mapping[str, Mapping[str, str]],
    model: SentimentModel,
    moment: datetime,
) -> Plan:
    binder = DuckDBBinder(schemas, lambda connection: register_functions(connection, model))
    try:
        return plan(
            texts,
            schemas,
            scalar_functions=RETURN_TYPES,
            moment=moment,
            binder=binder,
        )
    finally:
        binder.close()


def _stored_map(
    cursor: duckdb.DuckDBPyConnection, name: str, schema: Mapping[str, str], made: Plan
) -> TableMap:
    """Return how rows of a dataset become those that the scans read: what none reads is null."""
    scans = tuple(scan for scan in made.scans if scan.table == name)
    needed = _needed(cursor, scans, name, name)
    columns = tuple(one for one in schema if one in needed) or tuple(schema)[:1]  # to count rows
    outputs = ", ".join(
        f"CAST({quote(one) if one in needed else 'NULL'} AS {kind}) AS {quote(one)}"
        for one, kind in schema.items()
    )
    table = Table(name, (), columns, "", name)
    sql = f"SELECT {outputs} FROM raw"
    return TableMap(Cleaning(table, sql, Wanted(name, columns), (), Prefilter()), scans)


def _needed(
    cursor: duckdb.DuckDBPyConnection, scans: Sequence[Scan], table: str, origin: str
) -> set[str]:
    """Return the columns of a table that its scans read."""
    return {
        name for scan in scans for name in read_by(cursor, scan.sql, origin).columns.get(table, ())
    }


def _table_map(
    cursor: duckdb.DuckDBPyConnection, table: Table, cleaned: Mapping[str, str], made: Plan
) -> TableMap:
    scans = tuple(scan for scan in made.scans if scan.table == table.name)
    needed = _needed(cursor, scans, table.name, table.origin)
    outputs = [
        quote(name) if name in needed else f"CAST(NULL AS {kind}) AS {quote(name)}"
        for name, kind in without_reject(cleaned).items()
    ]
    cleaning = make_cleaning(cursor, table, cleaned, outputs)
    visible_rows = _hinted_rows(cursor, without_reject(cleaned), scans, made.hints)
    prefiltered = (
        make_cleaning(cursor, table, cleaned, outputs, visible_rows=visible_rows)
        if visible_rows
        else None
    )
    return TableMap(
        cleaning, scans, prefiltered if prefiltered and prefiltered.prefilter.drops else None
    )


def _hinted_rows(
    cursor: duckdb.DuckDBPyConnection,
    schema: Mapping[str, str],
    scans: Sequence[Scan],
    hints: Sequence[Hint],
) -> list[VisibleRows]:
    """Return the rows that each scan sees, if each has a hint whose key is a plain column."""
    by_scan = {hint.scan: hint for hint in hints}
    columns = {quote(name): (name, kind) for name, kind in schema.items()}
    visible_rows = []
    for scan in scans:
        hint = by_scan.get(scan.name)
        column, kind = columns.get(hint.key, ("", "")) if hint else ("", "")
        if hint is None or kind != hint.type:
            return []
        create_empty(cursor, prefilter_keys(scan.name), {"key": kind})
        visible_rows.append(VisibleRows((KeyMembership(column, prefilter_keys(scan.name)),)))
    return visible_rows
