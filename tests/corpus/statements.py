"""Statements over the documented grammar of DuckDB's SELECT, and the small tables that they read.

Every file holds the statements of one section of the grammar, each ended by a semicolon at the end
of a line. Rows of ORDERED sections come in one order only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tests.harness.oracle import ORACLE

FOLDER = Path(__file__).parent
ORDERED = ("order_limit",)

SCHEMAS: dict[str, dict[str, str]] = {
    "sales": {
        "id": "INTEGER", "shop": "VARCHAR", "item": "INTEGER", "price": "DOUBLE",
        "paid": "DECIMAL(10,2)", "day": "DATE", "sold": "TIMESTAMP", "note": "VARCHAR",
        "tags": "VARCHAR[]",
    },
    "items": {
        "item": "INTEGER", "name": "VARCHAR", "weight": "DOUBLE",
        "spot": "STRUCT(x INTEGER, y VARCHAR)",
    },
    "shops": {"shop": "VARCHAR", "Town Hall": "VARCHAR", "town": "VARCHAR", "opened": "DATE",
              "size": "BIGINT"},
    "numbers": {"n": "INTEGER", "big": "BIGINT", "h": "HUGEINT", "f": "FLOAT", "b": "BOOLEAN"},
}  # fmt: skip
ROWS = {
    "sales": """
        (1, 'a', 1, 2.5, 2.50, '2020-01-03', '2020-01-03 10:00:00', '12', ['p', 'q']),
        (2, 'b', 2, 0.5, 0.50, '2020-01-01', '2020-01-01 23:30:00', 'x1', ['q']),
        (3, 'a', 2, 1.5, 1.55, '2020-01-02', '2020-01-02 00:30:00', '7', ['p']),
        (4, 'c', 3, NULL, NULL, '2020-01-05', '2020-01-05 12:00:00', NULL, NULL),
        (5, 'b', 1, 4.0, 4.01, '2020-01-04', '2020-01-04 08:15:00', '1y', ['r', 'p', 'q']),
        (6, 'a', 3, 8.25, 8.25, '2020-01-06', '2020-01-06 18:45:00', 'xy', ['r']),
        (7, NULL, 4, 1.0, 1.00, '2020-02-07', '2020-02-07 09:00:00', '1%', ['p', 'p'])""",
    "items": """
        (1, 'pen', 0.5, {'x': 1, 'y': 'u'}), (2, 'ink', 1.5, {'x': NULL, 'y': 'v'}),
        (3, NULL, 2.5, NULL), (5, 'q', NULL, {'x': 3, 'y': 'w'})""",
    "shops": """
        ('a', 'Hall 1', 'Rosario', '2019-05-01', 3), ('b', NULL, 'Lima', '2020-01-02', 1),
        ('d', 'Hall 2', 'Quito', NULL, 7)""",
    "numbers": """
        (1, 1, 1, 0.5, true), (2, 4, 170141183460469231731687303715884105, 1.5, false),
        (3, 9223372036854775807, -5, 'nan', NULL), (NULL, NULL, NULL, NULL, true),
        (4, -2, 3, 4.0, false)""",
}


@dataclass(frozen=True)
class Statement:
    section: str
    sql: str

    @property
    def is_ordered(self) -> bool:
        return self.section in ORDERED


def statements() -> Iterator[Statement]:
    for path in sorted(FOLDER.glob("*.sql")):
        text = path.read_text(encoding="utf-8")
        for sql in (part.strip() for part in text.split(";\n")):
            if sql:
                yield Statement(path.stem, sql)


def database(*, lossless: bool = False) -> duckdb.DuckDBPyConnection:
    """A plain DuckDB with the tables, in the session that all engines have."""
    made = duckdb.connect(config={**ORACLE, "arrow_lossless_conversion": lossless})
    made.execute("SET TimeZone = 'UTC'")
    for table, schema in SCHEMAS.items():
        columns = ", ".join(f'"{name}" {kind}' for name, kind in schema.items())
        made.execute(f"CREATE TABLE {table} ({columns})")
        made.execute(f"INSERT INTO {table} VALUES {ROWS[table]}")
    return made
