"""Random tables: small, full of nulls, duplicates, -0.0 and NaN, and empty now and then."""

import datetime
import decimal
import itertools
import random
from typing import Any

import duckdb
import pyarrow as pa

from caudal.duck.arrow_casts import carried

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

_ENUM = "ENUM('high', 'low', 'middling', 'it''s')"

# Every other type that DuckDB has, with the texts that are drawn. Of one type no two values are
# equal and written differently, as 24 hours and a day: which a group keeps would be chance.
TEXTS: dict[str, list[str]] = {
    _ENUM: ["high", "low", "middling", "it's"],
    "BIT": ["1", "01", "101", "0000000000", "111111111"],
    "TIME WITH TIME ZONE": ["10:00:00+00", "11:30:00+05:30", "23:59:59.999999-12"],
    "UHUGEINT": ["0", "1", "170141183460469231731687303715884105728", str(2**128 - 1)],
    "HUGEINT": ["0", "-1", str(2**127 - 1), str(-(2**127))],
    "BIGNUM": ["0", "-5", "123456789012345678901234567890123456789012345"],
    "TIMESTAMP": ["2020-01-31 10:00:00.000001", "1969-12-31 23:59:59", "infinity", "290000-01-01"],
    "TIMESTAMP_S": ["2020-01-31 10:00:00", "1969-12-31 23:59:59"],
    "TIMESTAMP_MS": ["2020-01-31 10:00:00.001", "1969-12-31 23:59:59.999"],
    "TIMESTAMP_NS": ["2020-01-31 10:00:00.000000001", "1969-12-31 23:59:59.999999999"],
    "TIMESTAMP WITH TIME ZONE": ["2020-01-31 10:00:00+00", "2020-01-31 23:30:00-05", "infinity"],
    "TIME": ["10:11:12.131415", "00:00:00", "24:00:00"],
    "TIME_NS": ["10:11:12.131415161", "00:00:00.000000001"],
    "DATE": ["2020-01-31", "-infinity", "0044-03-15 (BC)"],
    "UUID": ["6f6d2b5a-3c0f-4f9e-8d55-0a1b2c3d4e5f", "00000000-0000-0000-0000-000000000000"],
    "INTERVAL": ["1 month", "-3 days", "2562047788:00:54.775807", "00:00:00.000001"],
    "JSON": ['{"a": [1, null]}', "7", '"x"'],
    "BLOB": ["\\x00\\xFF", "a", ""],
    "DECIMAL(38,10)": ["0.0000000001", "-9999999999999999999999999999.9999999999"],
    "FLOAT": ["0.5", "-2.25", "nan", "inf"],
    f"{_ENUM}[]": ["[low, high]", "[]", "[NULL, middling]", "[high]"],
    "BIT[]": ["[101, 01]", "[NULL]", "[]"],
    f"STRUCT(e {_ENUM}, b BIT)": ["{'e': low, 'b': 01}", "{'e': high, 'b': 1}",
                                  "{'e': NULL, 'b': 1}"],
    f"STRUCT(l STRUCT(i INTERVAL)[], t {_ENUM})": ["{'l': [{'i': 1 month}], 't': low}",
                                                  "{'l': [], 't': high}"],
    f"MAP({_ENUM}, UHUGEINT)": ["{low=1, high=340282366920938463463374607431768211455}", "{}"],
    f"TUPLE({_ENUM}, INTEGER)": ["(low, 1)", "(high, NULL)"],
}  # fmt: skip
_KINDS = {"rid": "INTEGER", **{f"c{place}": kind for place, kind in enumerate(TEXTS)}}
KINDS: dict[str, dict[str, str]] = {"kinds": _KINDS, "others": _KINDS}
ALL = {**SCHEMAS, **KINDS}

# None equals another, as 24 hours equal a day: which of them a group keeps would be chance.
_PAUSES = ["0 seconds", "1 day", "90 minutes", "2 months", "-3 days", "1 microsecond"]
_BYTES = [b"", b"a", b"\x00", b"\xff\xfe", b"ab"]
_UNSIGNED = {"UTINYINT": 2**8 - 1, "UBIGINT": 2**64 - 1, "UHUGEINT": 2**128 - 1}

_WORDS = ["", "a", "b", "ab", "B", "ñu", "x y", "it's"]


class Maker:
    """Makes tables; DuckDB types what Python drew."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"arrow_lossless_conversion": True, "threads": 1})
        self._connection.execute("SET TimeZone = 'UTC'")

    def close(self) -> None:
        self._connection.close()

    def tables(self, chance: random.Random) -> dict[str, pa.Table]:
        """One table per schema, of up to about forty rows."""
        sizes = [0, 1, 3, 8, 20, 40]
        return {name: self._table(name, chance.choice(sizes), chance) for name in SCHEMAS}

    def kinds(self, chance: random.Random) -> dict[str, pa.Table]:
        """The tables with a column of every type."""
        return {name: self._typed(chance.choice([0, 1, 5, 12, 30]), chance) for name in KINDS}

    def _typed(self, rows: int, chance: random.Random) -> pa.Table:
        def drawn(texts: list[str]) -> list[str | None]:
            return [chance.choice([None, *texts, *texts]) for _ in range(rows)]

        columns = {f"c{n}": pa.array(drawn(t), pa.string()) for n, t in enumerate(TEXTS.values())}
        self._connection.register("drawn", pa.table({"rid": pa.array(range(rows)), **columns}))
        listed = ", ".join(f"CAST({c} AS {kind}) AS {c}" for c, kind in _KINDS.items())
        made = carried(self._connection.sql(f"SELECT {listed} FROM drawn"))
        self._connection.unregister("drawn")
        return made

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
        made = carried(self._connection.sql(f"SELECT {listed} FROM drawn"))
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
