"""A table's SQL: checks it, and makes the SQL that turns batches of its files into typed rows.

A table's SQL is a SELECT that gives one row for each row of `raw`, row by row (row_wise.py). Its
column `reject`, if any, holds the reason to leave a row out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import duckdb

from caudal.duck.describe import create_empty, describe, read_by, types_given
from caudal.duck.row_wise import require_row_wise
from caudal.errors import ApplicationError
from caudal.files.cleaning import Cleaning, Copied, Wanted
from caudal.model import REJECT, ROW, SEEN, Table
from caudal.sql.quoting import quote
from caudal.sql.table_needs import (
    ALL_ROWS,
    ComputedColumn,
    Flag,
    KeyMembership,
    Number,
    Prefilter,
    Schema,
    VisibleRows,
)

_NO_FLAGS: Mapping[KeyMembership, Flag] = {}
MOST_COLUMNS = 400  # of a table whose SQL is parsed, 3 ms for each column
_MANY_COLUMNS = 1_000  # to ask which ones are read takes longer than to read them all


def bind_table(cursor: duckdb.DuckDBPyConnection, table: Table) -> Schema:
    """Return the result columns of a table's SQL with `reject`. Create an empty table of them."""
    if not table.columns:
        raise ApplicationError(f"{table.origin}: app.toml lists no columns for {table.name}")
    create_empty(cursor, "raw", dict.fromkeys(table.columns, "VARCHAR"))
    columns = describe(cursor, table.sql, table.origin)
    require_row_wise(cursor, table.sql, table.columns, table.origin)
    names = [name.lower() for name, _ in columns]
    if len(set(names)) < len(names):
        doubled = next(name for name in names if names.count(name) > 1)
        raise ApplicationError(f"{table.origin}: gives two columns called {doubled!r}")
    schema = dict(columns)
    if not without_reject(schema):
        raise ApplicationError(f"{table.origin}: gives no column besides `reject`")
    create_empty(cursor, table.name, without_reject(schema))
    return schema


def without_reject(schema: Schema) -> Schema:
    """Return the columns without `reject`."""
    return {name: kind for name, kind in schema.items() if name != REJECT}


def _reject_reason(cleaned: Schema) -> str:
    """Return the SQL for the reject reason of a table's cleaned rows; null for a row to keep."""
    return f"CAST({quote(REJECT) if REJECT in cleaned else 'NULL'} AS VARCHAR)"


def make_cleaning(
    cursor: duckdb.DuckDBPyConnection,
    table: Table,
    cleaned: Schema,
    outputs: Sequence[str],
    computed: Sequence[ComputedColumn] = (),
    visible_rows: Sequence[VisibleRows] = (ALL_ROWS,),
    *,
    copied: tuple[Copied, ...] = (),
) -> Cleaning:
    """A batch of `raw` to the given outputs and computed columns, reading no more than needed.

    It reads no more of the files than needed. Its SQL gives at least the visible rows and the rows
    to reject, each with its position in `raw`. It always gives the last row too, to check that
    there are as many rows as in `raw`. If the SQL leaves rows out, a column says of each row
    whether a query sees it, because the last row may have to be dropped.

    Outputs can be `copied` only if all rows are visible.
    """
    visible_rows = [comparable(cursor, cleaned, rows) for rows in visible_rows]
    computed = [
        replace(one, visible_rows=comparable(cursor, cleaned, one.visible_rows)) for one in computed
    ]
    every = [*visible_rows, *(one.visible_rows for one in computed)]
    source = _over_raw(cursor, table, cleaned, every)
    reason = _reject_reason(cleaned)
    calls = [
        f"CASE WHEN {reason} IS NULL "
        f"AND {visible_condition([one.visible_rows for one in same], source.flags)} "
        f"THEN {same[0].function}({quote(same[0].column)}) END AS {quote(name)}"
        for name, same in _by_name(computed).items()
    ]
    place = f"row_number() OVER () - 1 AS {quote(ROW)}"
    listed = [*outputs, *calls, f"{reason} AS {quote(REJECT)}", place]
    visible, chosen = visible_condition(visible_rows, source.flags), ""
    if visible != "TRUE" and not source.decides(visible_rows):
        listed.append(f"{visible} AS {quote(SEEN)}")
        chosen = (
            f" QUALIFY {quote(SEEN)} OR {reason} IS NOT NULL "
            f"OR {quote(ROW)} >= (SELECT count(*) - 1 FROM raw)"
        )
    sql = f"SELECT {', '.join(listed)} FROM (\n{source.sql}\n) AS cleaned{chosen}"
    prefilter = source.prefilter(visible_rows)
    texts = table.columns
    if len(texts) <= _MANY_COLUMNS:
        read = read_by(cursor, sql, table.origin).columns.get("raw", set()) | prefilter.columns
        read = read | {one.column for one in copied}
        texts = tuple(name for name in table.columns if name in read)
    wanted = Wanted(
        table.name,
        tuple(name for name in texts if name in prefilter.columns or not prefilter.drops),
        tuple((one.column, one.precision, one.scale) for one in source.numbers),
        tuple(name for name in texts if name not in prefilter.columns and prefilter.drops),
    )
    return Cleaning(table, sql, wanted, source.numbers, prefilter, copied)


@dataclass(frozen=True)
class _OverRaw:
    """A table's SQL over a `raw` to which the reader adds numbers and flags."""

    sql: str
    numbers: tuple[Number, ...] = ()
    flags: Mapping[KeyMembership, Flag] = field(default_factory=dict)
    present: tuple[str, ...] | None = None

    def decides(self, visible_rows: Sequence[VisibleRows]) -> bool:
        """Return whether the prefilter drops every row that is not visible, instead of the SQL."""
        return self.present is not None and all(
            not rows.conditions and self.flags.keys() >= set(rows.members) for rows in visible_rows
        )

    def prefilter(self, visible_rows: Sequence[VisibleRows]) -> Prefilter:
        """Return the prefilter that keeps these rows."""
        flags = tuple(dict.fromkeys(self.flags.values()))
        if self.present is None:
            return Prefilter(flags)
        seen = [
            tuple(self.flags[member] for member in rows.members if member in self.flags)
            for rows in visible_rows
        ]
        return Prefilter(flags, self.present, tuple(dict.fromkeys(seen)))


def _over_raw(
    cursor: duckdb.DuckDBPyConnection,
    table: Table,
    cleaned: Schema,
    visible_rows: Sequence[VisibleRows],
) -> _OverRaw:
    """What can be moved from a table's SQL into the reader; DuckDB has the last word.

    Nothing is moved if the table is very wide: to parse its SQL would take longer than it saves.
    """
    if len(table.columns) > MOST_COLUMNS:
        create_empty(cursor, "raw", dict.fromkeys(table.columns, "VARCHAR"))
        return _OverRaw(table.sql)
    from caudal.sql.number_columns import extract_numbers
    from caudal.sql.prefilters import project

    sql, numbers = extract_numbers(table.sql, table.columns)
    raw = dict.fromkeys(table.columns, "VARCHAR")
    raw |= {one.name: one.type for one in numbers} | {one.odd: "VARCHAR" for one in numbers}
    present: tuple[str, ...] | None = ()
    flags: dict[KeyMembership, Flag] = {}
    if (projection := project(sql, raw)) is not None:
        present = projection.present() if REJECT in cleaned else ()
        for member in dict.fromkeys(one for rows in visible_rows for one in rows.members):
            origin = projection.origin(member.column)
            if origin is not None and _key_types(cursor, member.keys) == [raw[origin]]:
                flags[member] = Flag(origin, member.keys)
        if flags:
            sql = projection.carrying(tuple(dict.fromkeys(flags.values())))
    named = {flag.name: "BOOLEAN" for flag in flags.values()}
    create_empty(cursor, "raw", {**raw, **named})
    if types_given(cursor, sql) == [*cleaned.values(), *named.values()]:
        return _OverRaw(sql, numbers, flags, present)
    return _OverRaw(table.sql)


def comparable(
    cursor: duckdb.DuckDBPyConnection, cleaned: Schema, rows: VisibleRows
) -> VisibleRows:
    """Return the rows without key sets of another type than their column: more rows, never fewer.

    To compare those keys could raise on rows that the query itself never compares.
    """
    members = tuple(
        one for one in rows.members if _key_types(cursor, one.keys) == [cleaned[one.column]]
    )
    if not members and not rows.conditions:
        return ALL_ROWS
    return replace(rows, members=members)


def _key_types(cursor: duckdb.DuckDBPyConnection, keys: str) -> list[str]:
    return [str(kind) for kind in cursor.table(keys).types]


def _by_name(computed: Sequence[ComputedColumn]) -> dict[str, list[ComputedColumn]]:
    grouped: dict[str, list[ComputedColumn]] = {}
    for one in computed:
        grouped.setdefault(one.name, []).append(one)
    return grouped


def visible_condition(
    visible_rows: Sequence[VisibleRows], flags: Mapping[KeyMembership, Flag] = _NO_FLAGS
) -> str:
    """Return SQL that says whether some SELECT looks at a row: true or false, never null. Flags
    stand for their members."""
    if ALL_ROWS in visible_rows:
        return "TRUE"
    conditions = []
    for rows in visible_rows:
        members = [quote(flags[one].name) if one in flags else one.sql for one in rows.members]
        conditions.append(f"({' AND '.join([*members, *rows.conditions])})")
    return f"COALESCE({' OR '.join(dict.fromkeys(conditions))}, FALSE)"
