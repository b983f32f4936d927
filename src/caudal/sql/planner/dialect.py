"""DuckDB's grammar, read and printed without opinions.

sqlglot knows hundreds of functions and prints some under another name. A planner that moves text
from one place to another must not rename anything, so functions stay as they were written: only
those with a grammar of their own (CAST, EXTRACT, ...) are parsed.
"""

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.parsers.duckdb import DuckDBParser

from caudal.errors import CaudalError

_OWN_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM")


class UnsupportedError(CaudalError):
    """A shape that the planner does not split; the message is the reason shown by `explain`."""


class Verbatim(DuckDB):
    """DuckDB's dialect whose function calls are kept as they stand."""

    class Parser(DuckDBParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser
            for name, parser in DuckDBParser.FUNCTION_PARSERS.items()
            if name in _OWN_GRAMMAR
        }


def parse(sql: str) -> exp.Query:
    """The one SELECT in the text."""
    try:
        statements = Verbatim().parse(sql)
    except SqlglotError as error:
        raise UnsupportedError("its grammar is not known to the planner") from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise UnsupportedError("it is not a plain SELECT")
    return statements[0]


def parse_expression(sql: str) -> exp.Expr:
    """Return the tree of an expression that `text` wrote."""
    expression: exp.Expr = parse(f"SELECT {sql}").expressions[0]
    return expression


def text(expression: exp.Expr) -> str:
    """The expression as SQL, function names as written, comments left out."""
    return expression.sql(
        dialect=Verbatim,
        comments=False,
        normalize_functions=False,
        unsupported_level=ErrorLevel.IGNORE,  # DuckDB says whether the text is the same
    )


def quoted(name: str) -> str:
    """An identifier that is safe in any place."""
    return '"' + name.replace('"', '""') + '"'
