"""DuckDB's grammar, parsed and printed without changing function names.

sqlglot knows hundreds of functions and prints some of them under another name. The planner moves
texts from one place to another and must not rename anything. So function calls stay as they were
written; only those with a grammar of their own (CAST, EXTRACT, ...) are parsed.
"""

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.parsers.duckdb import DuckDBParser

from caudal.errors import CaudalError

_OWN_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM")


class UnsupportedError(CaudalError):
    """A query that the planner does not split. `explain` shows the message as the reason."""


class Verbatim(DuckDB):
    """DuckDB's dialect, with function calls kept as they were written."""

    class Parser(DuckDBParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser
            for name, parser in DuckDBParser.FUNCTION_PARSERS.items()
            if name in _OWN_GRAMMAR
        }


def parse(sql: str) -> exp.Query:
    """Return the tree of a text that is one SELECT."""
    try:
        statements = Verbatim().parse(sql)
    except SqlglotError as error:
        raise UnsupportedError("its grammar is not known to the planner") from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise UnsupportedError("it is not a plain SELECT")
    return statements[0]


def parse_expression(sql: str) -> exp.Expr:
    """Return the tree of an expression that `text` printed."""
    expression: exp.Expr = parse(f"SELECT {sql}").expressions[0]
    return expression


def text(expression: exp.Expr) -> str:
    """Return the expression as SQL: function names as written, without comments."""
    return expression.sql(
        dialect=Verbatim,
        comments=False,
        normalize_functions=False,
        unsupported_level=ErrorLevel.IGNORE,  # DuckDB is asked whether the text means the same
    )
