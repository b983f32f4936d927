"""Converts rows between DuckDB and Arrow, with the casts of sql/carriers.py.

Rules
1. Rows for another stage are exported with `carried`. A column that Arrow would change is cast to
   its carrier type, and the metadata of its field (key TYPE) names the original type.
2. Rows of another stage are read with `readable`, which casts such columns back.
3. Rows for people are exported with `presented`, in plain Arrow types.
"""

import contextlib
from collections.abc import Iterator

import duckdb
import pyarrow as pa

from caudal.errors import FormatError, QueryError
from caudal.sql import carriers
from caudal.sql.carriers import Kind, ListedCarrier, Nested, Plain, UnknownTypeError
from caudal.sql.quoting import quote

TYPE = b"caudal.type"  # field metadata: the DuckDB type of a column in a carrier type

_WIDE_DIGITS = 39
_NARROW = pa.decimal128(38, 0)
_MOST_NARROW = 10**38
_PART_ROWS = 20_000


def carried(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """Return the rows for another stage. Call it inside `without_loss`."""
    types = [str(kind) for kind in relation.types]
    leaving = _leaving(relation.columns, types, [f"#{n + 1}" for n in range(len(types))])
    if all(text.startswith("#") for text in leaving):
        return relation.to_arrow_table()
    listed = (f"{text} AS {quote(n)}" for n, text in zip(relation.columns, leaving, strict=True))
    return marked(relation.project(", ".join(listed)).to_arrow_table(), types)


def marked(rows: pa.Table, types: list[str]) -> pa.Table:
    """Return the rows with the original type in the metadata of each carried column."""
    fields = [
        field.with_metadata({**(field.metadata or {}), TYPE: kind.encode()})
        if carriers.carrier(kind) is not None
        else field
        for field, kind in zip(rows.schema, types, strict=True)
    ]
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields, rows.schema.metadata))


def carrying_list(columns: list[tuple[str, str]]) -> str:
    """Return the list of a SELECT that casts these (column, type) to their carrier types."""
    names = [name for name, _ in columns]
    leaving = _leaving(names, [kind for _, kind in columns], [quote(name) for name in names])
    return ", ".join(f"{text} AS {quote(n)}" for n, text in zip(names, leaving, strict=True))


def _leaving(columns: list[str], types: list[str], values: list[str]) -> list[str]:
    """Return SQL expressions that cast the values of these columns to their carrier types."""
    found = []
    for name, kind, value in zip(columns, types, values, strict=True):
        try:
            found.append(carriers.leaving(kind, value))
        except UnknownTypeError as error:
            raise QueryError(
                f"column {name!r} has a type that cannot leave DuckDB unchanged ({error}): "
                f"CAST({quote(name)} AS VARCHAR) instead"
            ) from error
    return found


@contextlib.contextmanager
def without_loss(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Set a database to convert to Arrow as `carried` needs it; after that, as `presented` does."""
    connection.execute("SET arrow_lossless_conversion = true")
    try:
        yield
    finally:
        connection.execute("SET arrow_lossless_conversion = false")


@contextlib.contextmanager
def readable(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> Iterator[None]:
    """Provide the rows as a relation of this name, with columns of their original types."""
    own = {field.name: _own_type(field) for field in rows.schema}
    if not any(own.values()):
        connection.register(name, rows)
        try:
            yield
        finally:
            connection.unregister(name)
        return
    inner = f"carried {name}"
    listed = ", ".join(
        quote(column)
        if kind is None
        else f"{carriers.arriving(kind, quote(column))} AS {quote(column)}"
        for column, kind in own.items()
    )
    connection.register(inner, rows)
    try:
        connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS SELECT {listed} FROM {quote(inner)}"
        )
        yield
    finally:
        with contextlib.suppress(duckdb.InterruptException):  # the next reader replaces the view
            connection.execute(f"DROP VIEW IF EXISTS temp.{quote(name)}")
        connection.unregister(inner)


def _own_type(field: pa.Field) -> str | None:
    given = (field.metadata or {}).get(TYPE)
    if given is None:
        return None
    try:
        return carriers.checked(given.decode())
    except ValueError as error:
        raise FormatError(f"column {field.name!r} names a type that is none") from error


def presented(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """Return the rows of a result in plain Arrow types. Call it outside of `without_loss`."""
    types = [str(kind) for kind in relation.types]
    return _presented(_shown_as(relation, types).to_arrow_table(), types)


def presented_parts(relation: duckdb.DuckDBPyRelation, names: list[str]) -> Iterator[pa.Table]:
    """Yield the rows of `presented` while they are computed, at least one table.

    Parts may differ in the width of a HUGEINT.
    """
    types = [str(kind) for kind in relation.types]
    reader = _shown_as(relation, types).to_arrow_reader(_PART_ROWS)
    is_empty = True
    for batch in reader:
        yield _presented(pa.Table.from_batches([batch]), types).rename_columns(names)
        is_empty = False
    if is_empty:
        yield _presented(reader.schema.empty_table(), types).rename_columns(names)


def _presented(rows: pa.Table, types: list[str]) -> pa.Table:
    columns = [
        _fitting(_numbers(column, kind)) for column, kind in zip(rows.columns, types, strict=True)
    ]
    return pa.table(columns, names=rows.column_names)


def _shown_as(relation: duckdb.DuckDBPyRelation, types: list[str]) -> duckdb.DuckDBPyRelation:
    others = [_shown(kind) for kind in types]
    if not any(others):
        return relation
    listed = ", ".join(
        f"{f'#{place}' if other is None else f'CAST(#{place} AS {other})'} AS {quote(name)}"
        for place, (name, other) in enumerate(zip(relation.columns, others, strict=True), 1)
    )
    return relation.project(listed)


def _shown(kind: str) -> str | None:
    try:
        return carriers.shown(kind)
    except UnknownTypeError:  # keep DuckDB's own conversion
        return None


def _numbers(column: pa.ChunkedArray, type_text: str) -> pa.ChunkedArray:
    """Return a column with its UHUGEINTs, which arrive as text, as numbers."""
    if carriers.WIDE not in type_text:
        return column
    return column.cast(_with_numbers(column.type, carriers.parsed(type_text)))


def _with_numbers(arrow: pa.DataType, kind: Kind) -> pa.DataType:
    """Return the Arrow type of a presented column, with decimals for UHUGEINT."""
    match kind:
        case Plain(name=carriers.WIDE):
            return pa.decimal256(_WIDE_DIGITS, 0)
        case ListedCarrier(child=child, size=size):
            inner = arrow.value_field.with_type(_with_numbers(arrow.value_type, child))
            return pa.list_(inner, int(size)) if size else pa.list_(inner)
        case Nested(name="MAP", parts=((_, key), (_, item))):
            return pa.map_(_with_numbers(arrow.key_type, key), _with_numbers(arrow.item_type, item))
        case Nested(name="STRUCT" | "TUPLE", parts=parts):
            return pa.struct(
                field.with_type(_with_numbers(field.type, part))
                for field, (_, part) in zip(arrow, parts, strict=True)
            )
    return arrow  # inside a UNION they stay text: Arrow cannot cast it


def _fitting(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of HUGEINT or UHUGEINT as the narrowest decimal: 38 or 39 digits."""
    if column.type not in (_NARROW, pa.decimal256(_WIDE_DIGITS, 0)):
        return column
    wide = column.cast(pa.decimal256(_WIDE_DIGITS, 0))
    return wide.cast(_NARROW) if _fits(wide) else wide


def _fits(wide: pa.ChunkedArray) -> bool:
    import pyarrow.compute as pc

    ends = pc.min_max(wide).as_py()
    return all(end is None or abs(end) < _MOST_NARROW for end in ends.values())
