"""Random tables: small, full of nulls, duplicates, -0.0 and NaN, and empty now and then."""

import datetime
import decimal
import itertools
import random
from typing import Any

import duckdb
import pyarrow as pa

SCHEMAS: dict[str, dict[str, str]] = {
    "sales": {
        "rid": "INTEGER",
        "shop": "VARCHAR",
        "item": "BIGINT",
        "price": "DOUBLE",
        "paid": "DECIMAL(12,2)",
        "day": "DATE",
        "tags": "VARCHAR[]",
        "big": "HUGEINT",
        "code": "UBIGINT",
    },
    "items": {
        "rid": "INTEGER",
        "item": "INTEGER",
        "name": "VARCHAR",
        "weight": "DOUBLE",
        "made": "DATE",
        "sold": "BOOLEAN",
        "codes": "INTEGER[]",
        "spot": "STRUCT(x INTEGER, y VARCHAR)",
        "tiny": "UTINYINT",
    },
    "shops": {
        "rid": "INTEGER",
        "shop": "VARCHAR",
        "Town Hall": "VARCHAR",
        "size": "SMALLINT",
        "rate": "DOUBLE",
        "fee": "DECIMAL(10,3)",
        "pause": "INTERVAL",
        "mark": "BLOB",
        "wide": "UHUGEINT",
    },
}

# None equals another, as 24 hours equal a day: which of them a group keeps would be chance.
_PAUSES = ["0 seconds", "1 day", "90 minutes", "2 months", "-3 days", "1 microsecond"]
_BYTES = [b"", b"a", b"\x00", b"\xff\xfe", b"ab"]
_UNSIGNED = {"UTINYINT": 2**8 - 1, "UBIGINT": 2**64 - 1, "UHUGEINT": 2**128 - 1}

_WORDS = ["", "a", "b", "ab", "B", "ñu", "x y", "it's"]


class Maker:
    """Makes tables; DuckDB types what Python drew."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"arrow_lossless_conversion": True, "threads": 1})

    def close(self) -> None:
        self._connection.close()

    def tables(self, chance: random.Random) -> dict[str, pa.Table]:
        """One table per schema, of up to about forty rows."""
        sizes = [0, 1, 3, 8, 20, 40]
        return {name: self._table(name, chance.choice(sizes), chance) for name in SCHEMAS}

    def _table(self, name: str, rows: int, chance: random.Random) -> pa.Table:
        schema = SCHEMAS[name]
        drawn = pa.table(
            {
                column: pa.array(
                    [_value(column, kind, row, chance) for row in range(rows)], _arrow(kind)
                )
                for column, kind in schema.items()
            }
        )
        self._connection.register("drawn", drawn)
        listed = ", ".join(f'CAST("{c}" AS {kind}) AS "{c}"' for c, kind in schema.items())
        made = self._connection.sql(f"SELECT {listed} FROM drawn").to_arrow_table()
        self._connection.unregister("drawn")
        return made


def _arrow(kind: str) -> pa.DataType:
    if kind.endswith("[]"):
        return pa.list_(_arrow(kind[:-2]))
    if kind.startswith("DECIMAL"):
        return pa.decimal128(18, 4)
    if kind.startswith("STRUCT"):
        return pa.struct([("x", pa.int32()), ("y", pa.string())])
    if kind in _UNSIGNED or kind == "INTERVAL":
        return pa.string()  # which DuckDB casts
    plain = {
        "VARCHAR": pa.string(), "DOUBLE": pa.float64(), "DATE": pa.date32(), "BOOLEAN": pa.bool_(),
        "BLOB": pa.binary(),
    }  # fmt: skip
    return plain.get(kind, pa.int64())


def _value(column: str, kind: str, row: int, chance: random.Random) -> Any:
    if column == "rid":
        return row
    if chance.random() < 0.12:
        return None
    if kind.endswith("[]"):
        size = chance.choice([0, 1, 1, 2, 3])
        return [_scalar(kind[:-2], chance) if chance.random() > 0.1 else None for _ in range(size)]
    return _scalar(kind, chance)


def _scalar(kind: str, chance: random.Random) -> Any:
    if kind == "VARCHAR":
        return chance.choice(_WORDS)
    if kind == "DOUBLE":
        if chance.random() < 0.12:
            return chance.choice([-0.0, 0.0, float("nan")])
        return chance.choice([chance.randrange(-40, 40), chance.randrange(-(2**20), 2**20)]) / 8
    if kind.startswith("DECIMAL"):
        return decimal.Decimal(chance.randrange(-5000, 5000)) / 100
    if kind == "DATE":
        return datetime.date(2020, 1, 1) + datetime.timedelta(days=chance.randrange(0, 60))
    if kind == "BOOLEAN":
        return chance.random() < 0.5
    if kind == "INTERVAL":
        return chance.choice(_PAUSES)
    if kind == "BLOB":
        return chance.choice(_BYTES)
    if kind in _UNSIGNED:
        most = _UNSIGNED[kind]
        return str(chance.choice([0, 1, 2, 3, 5, 7, most - 1, most]))
    if kind.startswith("STRUCT"):
        x, y = chance.choice([None, 0, 1, 2]), chance.choice([None, "a", "b"])
        return {"x": x, "y": y}
    return chance.randrange(-3, 8)


def cut(table: pa.Table, chance: random.Random) -> list[pa.Table]:
    """The table in consecutive batches, some of them empty."""
    if table.num_rows == 0:
        return chance.choice([[], [table]])
    places = sorted(chance.randrange(0, table.num_rows + 1) for _ in range(chance.randrange(0, 5)))
    ends = [0, *places, table.num_rows]
    return [table.slice(a, b - a) for a, b in itertools.pairwise(ends)]
