"""Binding an application: do its SQL files fit each other, and what must be read for a run?

DuckDB decides, on empty tables; no row is read here.
1. A table's SELECT gives one row for each row of `raw`, by itself (rowwise.py); its column
   `reject`, if any, holds the reason to leave a row out.
2. Which columns a SELECT reads is what remains in DuckDB's plan once unused columns are removed.
   Columns that nothing reads are never kept: they appear as typed nulls, so the SQL still binds.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb

from caudal.engine.database import one_line
from caudal.engine.reading import Wanted
from caudal.engine.rowwise import require_row_wise
from caudal.errors import ApplicationError, UsageError
from caudal.kernels.csv import NumberColumn
from caudal.model import REJECT, ROW, Application, ParameterValue, Query, Table
from caudal.sql.lifts import (
    EVERYTHING,
    Lift,
    Member,
    Schema,
    Schemas,
    Seen,
    Sight,
    look,
    output_names,
    quote,
)
from caudal.sql.numbers import Number, lift_numbers
from caudal.sql.parameters import bind_parameters, parameter_names
from caudal.sql.planner import rewrite_averages
from caudal.sql.sieves import Flag, Sieve, project


@dataclass(frozen=True)
class BoundQuery:
    """A query ready to run: its columns' names, and what it reads and sees of each table."""

    query: Query
    sql: str
    names: tuple[str, ...]
    reads: Mapping[str, frozenset[str]]
    seen: Seen


@dataclass(frozen=True)
class Cleaning:
    """How the files of a table become typed rows."""

    table: Table
    sql: str  # one batch of `raw` -> outputs, and the reason to reject last
    wanted: Wanted  # of the files
    numbers: tuple[Number, ...]  # columns of `raw` that the reader fills with numbers
    sieve: Sieve


@dataclass(frozen=True)
class TableLoad:
    """How to read one table for the chosen queries."""

    cleaning: Cleaning
    create: tuple[str, ...]  # the table for kept columns, and the view with all of them
    stored: str  # that table's name as SQL
    key_sets: tuple[tuple[str, str], ...]
    lifts: tuple[Lift, ...]
    kept: tuple[str, ...]
    sights: tuple[Sight, ...]  # of all queries; rows out of sight of all are not kept

    @property
    def table(self) -> Table:
        return self.cleaning.table


@dataclass(frozen=True)
class Binding:
    """Everything a run of some queries of an application needs to know."""

    loads: tuple[TableLoad, ...]
    queries: tuple[BoundQuery, ...]


def choose_queries(app: Application, names: Sequence[str] | None) -> tuple[Query, ...]:
    """The named queries, or all."""
    if not names:
        return app.queries
    known = {query.name: query for query in app.queries}
    for name in names:
        if name not in known:
            raise UsageError(
                f"{app.name} has no query {name!r}; its queries are: {', '.join(known)}"
            )
    return tuple(known[name] for name in dict.fromkeys(names))


def bind(
    app: Application,
    queries: Sequence[Query],
    parameters: Mapping[str, ParameterValue],
    connection: duckdb.DuckDBPyConnection,
) -> Binding:
    """Check the SQL of the queries and of the tables; say what to load."""
    values = parameter_values(app, parameters)
    with empty_schema(connection) as cursor:
        cleaned = {table.name: bind_table(cursor, table) for table in app.tables}
        schemas = {name: without_reject(schema) for name, schema in cleaned.items()}
        bound = tuple(_bind_query(cursor, query, values, schemas) for query in queries)
        loads = tuple(
            _load(cursor, table, cleaned[table.name], bound)
            for table in app.tables
            if any(table.name in query.reads for query in bound)
        )
    return Binding(loads, bound)


def describe(cursor: duckdb.DuckDBPyConnection, sql: str, origin: str) -> list[tuple[str, str]]:
    """The columns that one SELECT gives, as (name, type)."""
    try:
        statements = cursor.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise ApplicationError(f"{origin}: must hold one SELECT and nothing else")
        rows = cursor.execute(f"DESCRIBE {sql}").fetchall()
    except duckdb.Error as error:
        raise ApplicationError(f"{origin}: {one_line(error)}") from None
    names = [row[0] for row in rows]
    declared = output_names(sql)
    if [name.lower() for name in names] == [name.lower() for name in declared]:
        names = declared  # DuckDB keeps the case of `"Title"` in `"Title" AS title`
    return [(name, row[1]) for name, row in zip(names, rows, strict=True)]


def columns_read(cursor: duckdb.DuckDBPyConnection, sql: str) -> dict[str, set[str]]:
    """Which columns of which tables a SELECT reads (rule 2)."""
    row = cursor.execute(f"EXPLAIN (FORMAT json) {sql}").fetchone()
    reads: dict[str, set[str]] = {}

    def visit(node: dict[str, Any]) -> None:
        for child in node["children"]:
            visit(child)
        table = node["extra_info"].get("Table")
        if table is not None:
            columns = node["extra_info"].get("Projections", [])
            names = [columns] if isinstance(columns, str) else columns
            name = _unquoted(table.split(".")[-1])
            reads.setdefault(name, set()).update(_whole_columns(cursor, name, names))

    for root in json.loads(row[1]) if row else ():
        visit(root)
    return reads


def _whole_columns(
    cursor: duckdb.DuckDBPyConnection, table: str, names: list[str]
) -> Iterator[str]:
    """The columns that a scan's projections mean: `spot.x` is a part of the column `spot`."""
    known: list[str] | None = None
    for name in filter(None, names):
        if "." in name and known is None:
            quoted = table.replace('"', '""')
            known = [row[0] for row in cursor.execute(f'DESCRIBE "{quoted}"').fetchall()]
        if known is None or name in known:
            yield name
        else:
            yield from [one for one in known if name.startswith(f"{one}.")] or known


def _unquoted(name: str) -> str:
    """A name as EXPLAIN writes it: in quotes where it is also a keyword."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


@contextlib.contextmanager
def empty_schema(connection: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor on an empty schema, where only the removal of unused columns optimises: other
    rules would conclude from the tables being empty, or move filters out of sight."""
    cursor = connection.cursor()
    rules = [row[0] for row in cursor.execute("FROM duckdb_optimizers()").fetchall()]
    try:
        cursor.execute(
            f"SET disabled_optimizers = '{','.join(r for r in rules if r != 'unused_columns')}'"
        )
        cursor.execute("ATTACH ':memory:' AS binding")  # where `main` is this one, not the real one
        cursor.execute("SET search_path = 'binding.main,memory.main'")
        yield cursor
    finally:
        cursor.execute("USE memory; DETACH binding; SET disabled_optimizers = ''")
        cursor.close()


def parameter_values(
    app: Application, given: Mapping[str, ParameterValue]
) -> dict[str, ParameterValue]:
    """The application's defaults with the given values in their place."""
    names = {
        name for query in app.queries for name in parameter_names(query.sql, query.origin)
    } | set(app.parameters)
    for name in given:
        if name not in names:
            known = f"its parameters are: {', '.join(sorted(names))}" if names else "it has none"
            raise UsageError(f"{app.name} has no parameter {name!r}; {known}")
    return {**app.parameters, **given}


def bind_table(cursor: duckdb.DuckDBPyConnection, table: Table) -> Schema:
    """The columns that a table's SQL gives, `reject` included; leaves an empty table behind."""
    if not table.columns:
        raise ApplicationError(f"{table.origin}: app.toml lists no columns for {table.name}")
    create_empty(cursor, "raw", dict.fromkeys(table.columns, "VARCHAR"))
    columns = describe(cursor, table.sql, table.origin)
    require_row_wise(cursor, table.sql, table.columns, table.origin)
    names = [name.lower() for name, _ in columns]
    doubled = [name for name in names if names.count(name) > 1]
    if doubled:
        raise ApplicationError(f"{table.origin}: gives two columns called {doubled[0]!r}")
    schema = dict(columns)
    if not without_reject(schema):
        raise ApplicationError(f"{table.origin}: gives no column besides `reject`")
    create_empty(cursor, table.name, without_reject(schema))
    return schema


def create_empty(cursor: duckdb.DuckDBPyConnection, name: str, schema: Schema) -> None:
    """A table of this schema, without rows."""
    columns = ", ".join(f"{quote(column)} {kind}" for column, kind in schema.items())
    cursor.execute(f"CREATE OR REPLACE TABLE {quote(name)} ({columns})")


def without_reject(schema: Schema) -> Schema:
    """The columns of a table, once `reject` has done its work."""
    return {name: kind for name, kind in schema.items() if name != REJECT}


def _bind_query(
    cursor: duckdb.DuckDBPyConnection,
    query: Query,
    values: Mapping[str, ParameterValue],
    schemas: Schemas,
) -> BoundQuery:
    sql = bind_parameters(query.sql, values, query.origin)
    columns = describe(cursor, sql, query.origin)
    names = tuple(name for name, _ in columns)
    types = [kind for _, kind in columns]
    sql = rewrite_averages(sql, lambda text: _types(cursor, text) == types)
    seen = look(sql, schemas)
    if seen.lifts:
        try:
            for table, schema in _with_lifts(schemas, seen.lifts).items():
                create_empty(cursor, table, schema)
            if _types(cursor, seen.sql) == types:
                return _bound(query, names, columns_read(cursor, seen.sql), seen)
        finally:
            for table, schema in schemas.items():
                create_empty(cursor, table, schema)
        seen = replace(seen, sql=sql, lifts=())
    read = columns_read(cursor, sql)
    with contextlib.suppress(duckdb.Error):  # it does not know #1
        for table in schemas.keys() & cursor.get_table_names(sql):
            read.setdefault(table, set())  # DESCRIBE reads no row, but needs the table
    return _bound(query, names, read, seen)


def _types(cursor: duckdb.DuckDBPyConnection, sql: str) -> list[str] | None:
    """The types of a SELECT's columns; None when it does not bind."""
    try:
        return [row[1] for row in cursor.execute(f"DESCRIBE {sql}").fetchall()]
    except duckdb.Error:
        return None


def _bound(
    query: Query, names: tuple[str, ...], reads: Mapping[str, set[str]], seen: Seen
) -> BoundQuery:
    lifted = {(one.table, one.name) for one in seen.lifts}
    kept = {
        table: frozenset(name for name in columns if (table, name) not in lifted)
        for table, columns in reads.items()
    }
    return BoundQuery(query, seen.sql, names, kept, seen)


def _with_lifts(schemas: Schemas, lifts: Sequence[Lift]) -> Schemas:
    return {
        table: {**schema, **{one.name: one.type for one in lifts if one.table == table}}
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
    lifts = [one for query in readers for one in query.seen.lifts if one.table == table.name]
    needed = {name for query in readers for name in query.reads[table.name]}
    kept = {name: kind for name, kind in schema.items() if name in needed}
    if not kept and not lifts:
        kept = dict([next(iter(schema.items()))])  # rows without any column cannot be stored
    sights = [
        sight for query in readers for sight in query.seen.sights.get(table.name, (EVERYTHING,))
    ]
    seen = [*sights, *(one.sight for one in lifts)]
    key_sets = tuple(dict.fromkeys(keys for sight in seen for keys in sight.key_sets))
    for name, select in key_sets:
        cursor.execute(f"CREATE OR REPLACE TABLE {name} AS {select} LIMIT 0")
    outputs = [quote(name) for name in kept]
    stored = f"stored.{quote(table.name)}"
    return TableLoad(
        cleaning=make_cleaning(cursor, table, cleaned, outputs, lifts, sights),
        create=_creation(table.name, stored, schema, kept, lifts),
        stored=stored,
        key_sets=key_sets,
        lifts=tuple(lifts),
        kept=tuple(kept),
        sights=tuple(sights),
    )


def _creation(
    name: str, stored: str, schema: Schema, kept: Schema, lifts: Sequence[Lift]
) -> tuple[str, ...]:
    extra = {one.name: one.type for one in lifts}
    columns = ", ".join(f"{quote(column)} {kind}" for column, kind in {**kept, **extra}.items())
    shown = [
        quote(column) if column in kept else f"CAST(NULL AS {kind}) AS {quote(column)}"
        for column, kind in schema.items()
    ] + [quote(column) for column in extra]
    return (
        "CREATE SCHEMA IF NOT EXISTS stored",
        f"CREATE TABLE {stored} ({columns})",
        f"CREATE VIEW {quote(name)} AS SELECT {', '.join(shown)} FROM {stored}",
    )


def reject_reason(cleaned: Schema) -> str:
    """The reason to reject as SQL over a table's cleaned rows: null where a row is kept."""
    return f"CAST({quote(REJECT) if REJECT in cleaned else 'NULL'} AS VARCHAR)"


def make_cleaning(
    cursor: duckdb.DuckDBPyConnection,
    table: Table,
    cleaned: Schema,
    outputs: Sequence[str],
    lifts: Sequence[Lift] = (),
    sights: Sequence[Sight] = (EVERYTHING,),
) -> Cleaning:
    """A batch of `raw` to the given outputs and lifts, reading no more of the files than needed.

    The SQL gives at least the rows that are visible and those to reject, each with its place in
    `raw`; and the last one in any case, so that it shows whether there are as many as in `raw`.
    """
    source = _over_raw(cursor, table, cleaned, [*sights, *(one.sight for one in lifts)])
    reason = reject_reason(cleaned)
    computed = [
        f"CASE WHEN {reason} IS NULL AND {_visible([one.sight for one in same], source.flags)} "
        f"THEN {same[0].function}({quote(same[0].column)}) END AS {quote(name)}"
        for name, same in _by_name(lifts).items()
    ]
    place = f"row_number() OVER () - 1 AS {quote(ROW)}"
    listed = ", ".join([*outputs, *computed, f"{reason} AS {quote(REJECT)}", place])
    sql = f"SELECT {listed} FROM (\n{source.sql}\n) AS cleaned"
    visible = _visible(sights, source.flags)
    if visible != "TRUE" and not source.decides(sights):
        sql += (
            f" QUALIFY {visible} OR {reason} IS NOT NULL "
            f"OR {quote(ROW)} >= (SELECT count(*) - 1 FROM raw)"
        )
    read = columns_read(cursor, sql).get("raw", set())
    sieve = source.sieve(sights)
    texts = [name for name in table.columns if name in read | sieve.columns]
    wanted = Wanted(
        table.name,
        tuple(name for name in texts if name in sieve.columns or not sieve.drops),
        tuple(NumberColumn(one.column, one.precision, one.scale) for one in source.numbers),
        tuple(name for name in texts if name not in sieve.columns and sieve.drops),
    )
    return Cleaning(table, sql, wanted, source.numbers, sieve)


@dataclass(frozen=True)
class _OverRaw:
    """A table's SQL over a `raw` that the reader fills with numbers and flags too."""

    sql: str
    numbers: tuple[Number, ...] = ()
    flags: Mapping[Member, Flag] = field(default_factory=dict)
    present: tuple[str, ...] | None = None

    def decides(self, sights: Sequence[Sight]) -> bool:
        """Does the sieve drop what is out of sight, so that the SQL need not?"""
        return self.present is not None and all(
            not sight.conditions and self.flags.keys() >= set(sight.members) for sight in sights
        )

    def sieve(self, sights: Sequence[Sight]) -> Sieve:
        """The sieve for rows of these sights."""
        flags = tuple(dict.fromkeys(self.flags.values()))
        if self.present is None:
            return Sieve(flags)
        seen = [
            tuple(self.flags[member] for member in sight.members if member in self.flags)
            for sight in sights
        ]
        return Sieve(flags, self.present, tuple(dict.fromkeys(seen)))


def _over_raw(
    cursor: duckdb.DuckDBPyConnection, table: Table, cleaned: Schema, sights: Sequence[Sight]
) -> _OverRaw:
    """What can be moved from a table's SQL into the reader; DuckDB has the last word."""
    sql, numbers = lift_numbers(table.sql, table.columns)
    raw = dict.fromkeys(table.columns, "VARCHAR")
    raw |= {one.name: one.type for one in numbers} | {one.odd: "VARCHAR" for one in numbers}
    present: tuple[str, ...] | None = ()
    flags: dict[Member, Flag] = {}
    if (projection := project(sql, raw)) is not None:
        present = projection.present() if REJECT in cleaned else ()
        for member in dict.fromkeys(one for sight in sights for one in sight.members):
            origin = projection.origin(member.column)
            if origin is not None and _key_types(cursor, member.keys) == [raw[origin]]:
                flags[member] = Flag(origin, member.keys)
        if flags:
            sql = projection.carrying(tuple(dict.fromkeys(flags.values())))
    named = {flag.name: "BOOLEAN" for flag in flags.values()}
    create_empty(cursor, "raw", {**raw, **named})
    if _types(cursor, sql) == [*cleaned.values(), *named.values()]:
        return _OverRaw(sql, numbers, flags, present)
    return _OverRaw(table.sql)


def _key_types(cursor: duckdb.DuckDBPyConnection, keys: str) -> list[str]:
    return [str(kind) for kind in cursor.table(keys).types]


def _by_name(lifts: Sequence[Lift]) -> dict[str, list[Lift]]:
    grouped: dict[str, list[Lift]] = {}
    for one in lifts:
        grouped.setdefault(one.name, []).append(one)
    return grouped


def _visible(sights: Sequence[Sight], flags: Mapping[Member, Flag]) -> str:
    """On which rows some SELECT looks: true or false, never null; flags stand for their members."""
    if EVERYTHING in sights:
        return "TRUE"
    conditions = []
    for sight in sights:
        members = [quote(flags[one].name) if one in flags else one.sql for one in sight.members]
        conditions.append(f"({' AND '.join([*members, *sight.conditions])})")
    return f"COALESCE({' OR '.join(dict.fromkeys(conditions))}, FALSE)"
