"""Binds an application: checks that its SQL files fit together, and finds what a run must read.

DuckDB decides that on empty tables (describe.py); no row is read here. Columns that no query reads
are not stored. They appear as typed nulls, so that the SQL still binds.
"""

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import duckdb

from caudal.duck.describe import (
    create_empty,
    describe,
    empty_schema,
    read_by,
    types_given,
)
from caudal.duck.functions import RETURN_TYPES
from caudal.duck.one_pass import Passes, passes_of
from caudal.duck.table_sql import bind_table, make_cleaning, without_reject
from caudal.errors import ApplicationError, UsageError
from caudal.files.cleaning import Cleaning
from caudal.model import Application, ParameterValue, Query, Table
from caudal.sql.derived import expand
from caudal.sql.literals import checked_value
from caudal.sql.parameters import bind_parameters, parameter_names
from caudal.sql.planner import Reads, TextChecks
from caudal.sql.planner.refusals import require_readable
from caudal.sql.planner.text_checks import Edit, SelectItem, may_be_rewritten
from caudal.sql.quoting import quote
from caudal.sql.table_needs import (
    ALL_ROWS,
    ComputedColumn,
    Footprint,
    Schema,
    Schemas,
    VisibleRows,
)

_NONE_GIVEN: Mapping[str, ParameterValue] = {}


@dataclass(frozen=True)
class BoundQuery:
    """A query ready to run: its column names, and its reads and sight for each table."""

    query: Query
    sql: str
    names: tuple[str, ...]
    reads: Mapping[str, frozenset[str]]
    seen: Footprint
    passes: Passes


@dataclass(frozen=True)
class TableLoad:
    """The way to read one table for the chosen queries."""

    cleaning: Cleaning
    create: tuple[str, ...]  # SQL: the table for kept columns, and the view with all columns
    stored: str  # the name of that table, quoted for SQL
    stored_types: Mapping[str, str]  # the columns of that table
    shown: str  # SQL: the columns of the view, over those of that table
    key_sets: tuple[tuple[str, str], ...]
    computed_columns: tuple[ComputedColumn, ...]
    kept: tuple[str, ...]
    visible_rows: tuple[VisibleRows, ...]  # of all queries; other rows are not kept

    @property
    def table(self) -> Table:
        return self.cleaning.table


@dataclass(frozen=True)
class RunBinding:
    """Everything that a run of some queries of an application needs."""

    loads: tuple[TableLoad, ...]
    queries: tuple[BoundQuery, ...]


def choose_queries(
    app: Application, names: Sequence[str] | None, given: Mapping[str, ParameterValue] = _NONE_GIVEN
) -> tuple[Query, ...]:
    """Return the named queries, or all.

    Append non-default parameter values to their titles, because a title may quote the default.
    """
    known = {query.name: query for query in app.queries}
    for name in names or ():
        if name not in known:
            raise UsageError(
                f"{app.name} has no query {name!r}; its queries are: {', '.join(known)}"
            )
    changed = {
        name: value
        for name, value in given.items()
        if name not in app.parameters or value != app.parameters[name]
    }
    return tuple(_titled(known[name], changed) for name in dict.fromkeys(names or known))


def _titled(query: Query, changed: Mapping[str, ParameterValue]) -> Query:
    used = parameter_names(query.sql, query.origin) if changed else ()
    told = ", ".join(f"{name}={changed[name]}" for name in used if name in changed)
    return replace(query, title=f"{query.title} ({told})") if told else query


def bind(
    app: Application,
    queries: Sequence[Query],
    parameters: Mapping[str, ParameterValue],
    connection: duckdb.DuckDBPyConnection,
) -> RunBinding:
    """Check the SQL of the queries and tables; return what to load."""
    values = parameter_values(app, parameters)
    with empty_schema(connection) as cursor:
        cleaned = {table.name: bind_table(cursor, table) for table in app.tables}
        schemas = {name: without_reject(schema) for name, schema in cleaned.items()}
        moment = datetime.now(UTC)
        bound = tuple(bind_query(cursor, query, values, schemas, moment) for query in queries)
        loads = tuple(
            _load(cursor, table, cleaned[table.name], bound)
            for table in app.tables
            if any(table.name in query.reads for query in bound)
        )
    return RunBinding(loads, bound)


def bind_whole_tables(
    app: Application, query: Query, connection: duckdb.DuckDBPyConnection
) -> RunBinding:
    """Check one query over tables that are loaded with all their rows and columns."""
    with empty_schema(connection) as cursor:
        cleaned = {table.name: bind_table(cursor, table) for table in app.tables}
        schemas = {name: without_reject(schema) for name, schema in cleaned.items()}
        moment = datetime.now(UTC)
        bound = bind_query(cursor, query, app.parameters, schemas, moment, early=False)
        whole = {table: frozenset(schemas[table]) for table in bound.reads}
        bound = replace(bound, reads=whole)
        loads = tuple(
            _load(cursor, table, cleaned[table.name], [bound])
            for table in app.tables
            if table.name in whole
        )
    return RunBinding(loads, (bound,))


def table_schemas(app: Application, connection: duckdb.DuckDBPyConnection) -> Schemas:
    """Return the columns of an application's tables, with their types."""
    with empty_schema(connection) as cursor:
        schemas = {table.name: without_reject(bind_table(cursor, table)) for table in app.tables}
        for table in app.derived:
            select = expand(f"SELECT * FROM {quote(table.name)}", app.derived, table.origin)
            schemas[table.name] = dict(describe(cursor, select, table.origin))
    return schemas


def parameter_values(
    app: Application, given: Mapping[str, ParameterValue]
) -> dict[str, ParameterValue]:
    """Return the application's parameters: the given values, and defaults for the others.

    Raise UsageError for an unknown name or a value of another type than the default.
    """
    names = {
        name for query in app.queries for name in parameter_names(query.sql, query.origin)
    } | set(app.parameters)
    for name in given:
        if name not in names:
            known = f"its parameters are: {', '.join(sorted(names))}" if names else "it has none"
            raise UsageError(f"{app.name} has no parameter {name!r}; {known}")
    checked = {
        name: checked_value(name, value, app.parameters.get(name)) for name, value in given.items()
    }
    return {**app.parameters, **checked}


def bind_query(
    cursor: duckdb.DuckDBPyConnection,
    query: Query,
    values: Mapping[str, ParameterValue],
    schemas: Schemas,
    moment: datetime | None = None,
    *,
    early: bool = True,
) -> BoundQuery:
    """Check one query; return what it reads and sees. Its `now()` is `moment`.

    Unless `early`, it sees all rows, and no column is computed while its table is read.
    """
    sql = bind_parameters(query.sql, values, query.origin)
    columns = describe(cursor, sql, query.origin)
    names = tuple(name for name, _ in columns)
    types = [kind for _, kind in columns]
    read = _readable(cursor, sql, query.origin, schemas)
    given, sql = sql, _rewritten(sql, _text_checks(cursor, types, moment))
    if sql != given:
        read = read_by(cursor, sql, query.origin)
    seen = _footprint(cursor, sql, schemas, read.scans) if early else Footprint(sql)
    if seen.computed_columns:
        try:
            for table, schema in _with_computed_columns(schemas, seen.computed_columns).items():
                create_empty(cursor, table, schema)
            if types_given(cursor, seen.sql) == types:
                rewritten = read_by(cursor, seen.sql, query.origin)
                return _bound(query, names, rewritten.columns, seen, passes_of(rewritten.plan))
        finally:
            for table, schema in schemas.items():
                create_empty(cursor, table, schema)
        seen = replace(seen, sql=sql, computed_columns=())
    kept = dict(read.columns)
    for table in _named_tables(cursor, sql, schemas):
        kept.setdefault(table, frozenset())  # DESCRIBE reads no row, but needs the table
    return _bound(query, names, kept, seen, passes_of(read.plan))


def _named_tables(cursor: duckdb.DuckDBPyConnection, sql: str, schemas: Schemas) -> Collection[str]:
    with contextlib.suppress(duckdb.Error):  # get_table_names fails on `#1`
        return schemas.keys() & cursor.get_table_names(sql)
    return ()


def _rewritten(sql: str, checks: TextChecks) -> str:
    if not may_be_rewritten(sql):
        return sql
    from caudal.sql.planner import rewrite_text

    return rewrite_text(sql, checks)


def _footprint(
    cursor: duckdb.DuckDBPyConnection, sql: str, schemas: Schemas, scans: Mapping[str, int]
) -> Footprint:
    if not schemas:
        return Footprint(sql)
    from caudal.duck.binder import is_same_statement
    from caudal.sql.footprint import DuckDBReading, analyze

    reading = DuckDBReading(scans, partial(is_same_statement, cursor))
    return analyze(sql, schemas, RETURN_TYPES, reading)


def _readable(cursor: duckdb.DuckDBPyConnection, sql: str, origin: str, schemas: Schemas) -> Reads:
    """Return what a query reads; raise ApplicationError for one that no engine answers."""
    every = [column for schema in schemas.values() for column in schema]
    read = read_by(cursor, sql, origin)
    try:
        require_readable(sql, read, every, lambda text: types_given(cursor, text) is not None)
    except UsageError as error:
        raise ApplicationError(f"{origin}: {error}") from None
    return read


def _text_checks(
    cursor: duckdb.DuckDBPyConnection, types: list[str], moment: datetime | None
) -> TextChecks:
    """Return what the planner's text rules ask about this query, whose columns have `types`."""

    def means_same(one: str, other: str) -> bool:
        from caudal.duck import bound_plans

        return bound_plans.mean_same(cursor, one, other)

    def change(text: str, edits: Sequence[Edit], items: Sequence[SelectItem]) -> str | None:
        from caudal.duck import kept_names

        return kept_names.change(text, edits, items)

    return TextChecks(moment, means_same, lambda text: types_given(cursor, text) == types, change)


def _bound(
    query: Query,
    names: tuple[str, ...],
    reads: Mapping[str, frozenset[str]],
    seen: Footprint,
    passes: Passes,
) -> BoundQuery:
    computed = {(one.table, one.name) for one in seen.computed_columns}
    kept = {
        table: frozenset(name for name in columns if (table, name) not in computed)
        for table, columns in reads.items()
    }
    return BoundQuery(query, seen.sql, names, kept, seen, passes)


def _with_computed_columns(schemas: Schemas, computed: Sequence[ComputedColumn]) -> Schemas:
    return {
        table: {**schema, **{one.name: one.type for one in computed if one.table == table}}
        for table, schema in schemas.items()
    }


def _load(
    cursor: duckdb.DuckDBPyConnection,
    table: Table,
    cleaned: Schema,
    queries: Sequence[BoundQuery],
) -> TableLoad:
    schema = without_reject(cleaned)
    readers = [query for query in queries if table.name in query.reads]
    computed = [
        one for query in readers for one in query.seen.computed_columns if one.table == table.name
    ]
    needed = {name for query in readers for name in query.reads[table.name]}
    kept = {name: kind for name, kind in schema.items() if name in needed}
    if not kept and not computed:
        kept = dict([next(iter(schema.items()))])  # rows without any column cannot be stored
    visible_rows = [
        rows for query in readers for rows in query.seen.visible_rows.get(table.name, (ALL_ROWS,))
    ]
    seen = [*visible_rows, *(one.visible_rows for one in computed)]
    key_sets = tuple(dict.fromkeys(keys for rows in seen for keys in rows.key_sets))
    for name, select in key_sets:
        cursor.execute(f"CREATE OR REPLACE TABLE {name} AS {select} LIMIT 0")
    outputs = [quote(name) for name in kept]
    stored = f"stored.{quote(table.name)}"
    stored_types = {**kept, **{one.name: one.type for one in computed}}
    shown = shown_columns(schema, stored_types)
    return TableLoad(
        cleaning=make_cleaning(cursor, table, cleaned, outputs, computed, visible_rows),
        create=_creation(table.name, stored, stored_types, shown),
        stored=stored,
        stored_types=stored_types,
        shown=shown,
        key_sets=key_sets,
        computed_columns=tuple(computed),
        kept=tuple(kept),
        visible_rows=tuple(visible_rows),
    )


def shown_columns(schema: Schema, stored: Mapping[str, str]) -> str:
    """Return all columns of a table and the computed ones, over those that are stored."""
    listed = [
        quote(column) if column in stored else f"CAST(NULL AS {kind}) AS {quote(column)}"
        for column, kind in schema.items()
    ]
    return ", ".join([*listed, *(quote(column) for column in stored if column not in schema)])


def _creation(
    name: str, stored: str, stored_types: Mapping[str, str], shown: str
) -> tuple[str, ...]:
    columns = ", ".join(f"{quote(column)} {kind}" for column, kind in stored_types.items())
    return (
        "CREATE SCHEMA IF NOT EXISTS stored",
        f"CREATE TABLE {stored} ({columns})",
        f"CREATE VIEW {quote(name)} AS SELECT {shown} FROM {stored}",
    )
