"""Types of columns: which of DuckDB's types Delta has, and a cast for each of the others.

A table with a TIMESTAMP (without time zone) needs the feature `timestampNtz` of Delta, which
readers know since protocol version 3. Every other table has protocol version 1.
"""

from collections.abc import Iterable
from typing import Any

from caudal.datasets.keys import REJECTS
from caudal.errors import ApplicationError, FormatError
from caudal.formats.keys import NAME
from caudal.sql.carriers import Kind, ListedCarrier, Nested, Plain, UnknownTypeError, parsed
from caudal.sql.quoting import quote

_DELTA = {
    "BOOLEAN": "boolean",
    "TINYINT": "byte",
    "SMALLINT": "short",
    "INTEGER": "integer",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
    "VARCHAR": "string",
    "BLOB": "binary",
}
_CASTS = {
    "HUGEINT": "DECIMAL(38,0)",
    "UHUGEINT": "DECIMAL(38,0)",
    "UBIGINT": "DECIMAL(20,0)",
    "UINTEGER": "BIGINT",
    "USMALLINT": "INTEGER",
    "UTINYINT": "SMALLINT",
    "TIMESTAMP_S": "TIMESTAMP",
    "TIMESTAMP_MS": "TIMESTAMP",
    "TIMESTAMP_NS": "TIMESTAMP",
    "TIMESTAMPTZ_NS": "TIMESTAMPTZ",
}
_TEXT = Plain("VARCHAR")
_NOT_IN_NAMES = frozenset(" ,;{}()\n\t=")


def check_columns(origin: str, table: str, columns: dict[str, str]) -> None:
    """Raise ApplicationError for the first column that a dataset cannot hold."""
    if table.lower() == REJECTS:
        raise ApplicationError(
            f"{origin}: a dataset keeps rejected rows in a table `{REJECTS}`: "
            "give this table another name"
        )
    for name, kind_text in columns.items():
        if bad := _NOT_IN_NAMES & set(name):
            raise ApplicationError(
                f"{origin}: column {name!r} of table {table} cannot be kept in a dataset: Delta "
                f"allows no {min(bad)!r} in a name; write AS with another name"
            )
        if (other := cast_for(kind_text)) is not None:
            raise ApplicationError(
                f"{origin}: column {name!r} of table {table} has type {_short(kind_text)}, which "
                f"Delta lacks: write CAST({quote(name)} AS {other})"
            )


def check_stored(table: str, columns: Iterable[tuple[str, str]]) -> None:
    """Raise FormatError unless a stored table has a name and types that may stand in SQL."""
    if not NAME.match(table):
        raise FormatError(f"{table!r} is no name of a table")
    for name, kind_text in columns:
        if cast_for(kind_text) is not None or _NOT_IN_NAMES & set(name):
            raise FormatError(f"column {name!r} of table {table} has no type that Delta has")


def cast_for(kind_text: str) -> str | None:
    """Return the type to cast a column to; None if Delta has the column's own type.

    >>> cast_for("UINTEGER[]"), cast_for("STRUCT(a TIME)"), cast_for("DECIMAL(18,9)")
    ('BIGINT[]', 'STRUCT(a VARCHAR)', None)
    """
    try:
        kind = parsed(kind_text)
    except UnknownTypeError:
        return "VARCHAR"
    fitting = _fitting(kind)
    return None if str(fitting) == str(kind) else str(fitting)


def delta_type(kind_text: str) -> Any:
    """Return the type of a column as a Delta schema writes it.

    >>> delta_type("DECIMAL(18,9)"), delta_type("VARCHAR[]")["elementType"]
    ('decimal(18,9)', 'string')
    """
    return _delta(parsed(kind_text))


def delta_fields(columns: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the fields of a Delta schema for columns given as (name, DuckDB type)."""
    return [_field(name, delta_type(kind)) for name, kind in columns]


def has_local_time(kind_text: str) -> bool:
    """Return whether a column holds a TIMESTAMP without time zone, at any depth."""
    return _has_local_time(parsed(kind_text))


def _has_local_time(kind: Kind) -> bool:
    match kind:
        case ListedCarrier(child=child):
            return _has_local_time(child)
        case Nested(parts=parts):
            return any(_has_local_time(part) for _, part in parts)
    return kind.name == "TIMESTAMP"


def _fitting(kind: Kind) -> Kind:
    match kind:
        case Plain(name="DECIMAL"):
            return kind
        case Plain(name=name) if name in _DELTA:
            return kind
        case Plain(name=name):
            return Plain(_CASTS[name]) if name in _CASTS else _TEXT
        case ListedCarrier(child=child):
            return ListedCarrier(_fitting(child))
        case Nested(name="STRUCT" | "MAP" as name, parts=parts):
            return Nested(name, tuple((label, _fitting(part)) for label, part in parts))
    return _TEXT


def _delta(kind: Kind) -> Any:
    match kind:
        case Plain(name="DECIMAL", given=given):
            return f"decimal{given.replace(' ', '')}"
        case Plain(name=name):
            return _DELTA[name]
        case ListedCarrier(child=child):
            return {"type": "array", "elementType": _delta(child), "containsNull": True}
        case Nested(name="MAP", parts=((_, key), (_, item))):
            return {
                "type": "map",
                "keyType": _delta(key),
                "valueType": _delta(item),
                "valueContainsNull": True,
            }
        case Nested(parts=parts):
            fields = [_field(_bare(name), _delta(part)) for name, part in parts]
            return {"type": "struct", "fields": fields}


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _short(kind_text: str) -> str:
    return kind_text if len(kind_text) <= 60 else f"{kind_text[:59]}…"
