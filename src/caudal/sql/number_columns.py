"""Number columns: numbers that the reader parses straight from the bytes.

`to_integer(raw.x)`, `exact_integer(raw.x)`, `exact_decimal(raw.x)`, `TRY_CAST(raw.x AS DECIMAL(p,
s))` and the same of `number_text(raw.x)` in a table's SQL become columns of `raw` that the reader
fills. Most numbers have a few digits, and a kernel parses them many times faster than SQL converts
texts. Texts that the kernel does not parse
are in a further column, and the table's SQL converts them as before.
"""

from collections.abc import Sequence

from sqlglot import exp

from caudal.sql.parsing import NOT_UNDERSTOOD, read_sql
from caudal.sql.table_needs import Number

_MOST_DIGITS = 18  # of a decimal in 64 bits
_SHAPES = {"to_integer": (0, 0), "exact_integer": (0, 0), "exact_decimal": (_MOST_DIGITS, 9)}


def extract_numbers(sql: str, columns: Sequence[str]) -> tuple[str, tuple[Number, ...]]:
    """Return a table's SQL over a `raw` that holds number columns, and these columns."""
    try:
        tree = read_sql(sql).copy()
    except NOT_UNDERSTOOD:
        return sql, ()
    numbers: dict[Number, None] = {}
    for node in list(tree.find_all(exp.Anonymous, exp.TryCast)):
        number = _number(node, columns)
        if number is not None:
            numbers[number] = None
            node.replace(_either(number, node))
    return (tree.sql(dialect="duckdb"), tuple(numbers)) if numbers else (sql, ())


def _either(number: Number, conversion: exp.Expr) -> exp.Expr:
    """Return an expression for the parsed number, or else for the converted text."""
    odd = conversion.copy()
    for column in list(odd.find_all(exp.Column)):
        column.replace(_column(number.odd))
    return exp.Coalesce(this=_column(number.name), expressions=[odd])


def _column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), "raw")


def _number(node: exp.Expr, columns: Sequence[str]) -> Number | None:
    is_plain = False
    if isinstance(node, exp.TryCast):
        shape = _decimal(node.to)
        column = node.this
        if isinstance(column, exp.Anonymous) and column.name.lower() == "number_text":
            is_plain, column = True, column.expressions[0]
    elif node.name.lower() in _SHAPES and len(node.expressions) == 1:
        shape = _SHAPES[node.name.lower()]
        column = node.expressions[0]
    else:
        return None
    if shape is None or not isinstance(column, exp.Column) or column.table != "raw":
        return None
    return Number(column.name, *shape, is_plain) if column.name in columns else None


def _decimal(kind: exp.DataType) -> tuple[int, int] | None:
    if kind.this != exp.DType.DECIMAL or len(kind.expressions) != 2:
        return None
    precision, scale = (int(part.name) for part in kind.expressions)
    return (precision, scale) if 0 < precision <= _MOST_DIGITS else None
