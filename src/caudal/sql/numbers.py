"""Numbers that the reader takes straight from the bytes.

`to_integer(raw.x)` and `TRY_CAST(raw.x AS DECIMAL(p, s))` in a table's SQL become columns of `raw`
that the reader fills: most numbers are a few digits, and a kernel reads them many times faster
than SQL converts texts. What the kernel is not sure of is converted by the same SQL as before.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

_MOST_DIGITS = 18  # of a number in 64 bits


@dataclass(frozen=True)
class Number:
    """A column of the files, read as a number. An integer has scale 0 and `precision` 0."""

    column: str
    precision: int = 0
    scale: int = 0

    @property
    def type(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})" if self.precision else "BIGINT"

    @property
    def name(self) -> str:
        """What the column is called in `raw`."""
        return f"{self.column} as {self.type}"

    def conversion(self, text: str) -> str:
        """The SQL that converts a text: what the kernel's answers are equal to."""
        return f"TRY_CAST({text} AS {self.type})" if self.precision else f"to_integer({text})"


def lift_numbers(sql: str, columns: Sequence[str]) -> tuple[str, tuple[Number, ...]]:
    """A table's SQL over a `raw` that holds numbers too, and those numbers."""
    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
    except (SqlglotError, ValueError, RecursionError):
        return sql, ()
    numbers: dict[Number, None] = {}
    for node in list(tree.find_all(exp.Anonymous, exp.TryCast)):
        number = _number(node, columns)
        if number is not None:
            numbers[number] = None
            node.replace(exp.column(exp.to_identifier(number.name, quoted=True), table="raw"))
    return (tree.sql(dialect="duckdb"), tuple(numbers)) if numbers else (sql, ())


def _number(node: exp.Expr, columns: Sequence[str]) -> Number | None:
    if isinstance(node, exp.TryCast):
        shape = _decimal(node.to)
        column = node.this
    elif node.name.lower() == "to_integer" and len(node.expressions) == 1:
        shape = (0, 0)
        column = node.expressions[0]
    else:
        return None
    if shape is None or not isinstance(column, exp.Column) or column.table != "raw":
        return None
    return Number(column.name, *shape) if column.name in columns else None


def _decimal(kind: exp.DataType) -> tuple[int, int] | None:
    if kind.this != exp.DType.DECIMAL or len(kind.expressions) != 2:
        return None
    precision, scale = (int(part.name) for part in kind.expressions)
    return (precision, scale) if 0 < precision <= _MOST_DIGITS else None
