"""The fallback for queries that are not split: gather what they need, then run the author's text.

Rules
1. A column is left out only if DuckDB's plan does not read it, and if DuckDB's plan over tables
   without it is the same plan. So syntax that means columns without naming them (a star, COLUMNS,
   NATURAL, an alias like a column) cannot change its meaning. A text that names a column by its
   place (#1) keeps all columns, because the plan shows nothing else of it.
2. A condition is pushed into a scan only if all syntax is known (`known_syntax.py`), DuckDB scans
   the table once, and the text names it once. The condition must be a conjunct of the WHERE of the
   SELECT that reads the table, name columns of this table alone, and not raise an error. The table
   must not be null-extended there.
3. If the text cannot be parsed, whole tables are gathered; DuckDB names them.

Rule 2 answers for one table what `sql/footprint.py` answers for a query: which rows are visible.
Here the query could not be read into the algebra, or not be cut into stages. So only the WHERE of
one SELECT is read.
"""

import re
from collections.abc import Mapping

from sqlglot import exp

from caudal.sql.planner import expressions, known_syntax
from caudal.sql.planner.algebra import Context, Output, Relation
from caudal.sql.planner.binder import Binder, Reads
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.expressions import ExpressionReader
from caudal.sql.planner.plan import TableSchema
from caudal.sql.planner.scopes import Scope, ScopeSource
from caudal.sql.quoting import folded, quote

_PLACE = re.compile(r"#\s*\d")


def needed_columns(
    sql: str, reads: Reads | None, schemas: Mapping[str, TableSchema], binder: Binder
) -> dict[str, list[str]]:
    """Return the columns to gather of each table: at least one, because rows may be counted."""
    if reads is not None and not _PLACE.search(sql):
        needed = {
            table: [name for name in schema if name in reads.columns[table]] or list(schema)[:1]
            for table, schema in schemas.items()
            if table in reads.columns
        }
        if needed.keys() == schemas.keys():
            narrowed = binder.reads_over(sql, needed)
            if narrowed is not None and narrowed.plan == reads.plan:
                return needed
    return {table: list(schema) for table, schema in schemas.items()}


def own_predicates(
    query: exp.Query,
    table: str,
    scans: int,
    schemas: Mapping[str, TableSchema],
    own_functions: Mapping[str, str],
) -> list[str]:
    """Return conditions that every row of this table must meet to be visible, as SQL.

    `scans` is how often DuckDB scans the table.
    """
    references = [node for node in query.find_all(exp.Table) if folded(node.name) == folded(table)]
    if (
        len(references) != 1
        or scans != 1
        or known_syntax.find_unknown_syntax(query)
        or query.find(exp.With)
    ):
        return []
    reference = references[0]
    select = reference.parent_select
    if not isinstance(select, exp.Select) or not _rows_must_pass(reference, select):
        return []
    if reference.args.get("alias") and reference.args["alias"].args.get("columns"):
        return []  # the alias renames its columns
    where = select.args.get("where")
    if where is None:
        return []
    reader = _reader(reference, schemas[table], own_functions)
    alone = _is_only_source(select)
    pushed = (_pushed(part, reader, alone) for part in expressions.conjuncts(where.this))
    return [text for text in pushed if text is not None]


def _reader(
    reference: exp.Table, schema: TableSchema, own_functions: Mapping[str, str]
) -> ExpressionReader:
    """Return a reader of conditions that name columns of this table alone."""
    context = Context(dict(own_functions))
    outputs = tuple(Output(name, context.column(kind)) for name, kind in schema.items())
    source = ScopeSource(reference.alias or reference.name, outputs)
    return ExpressionReader(context, Scope([source], list(outputs)), _no_subquery)


def _no_subquery(query: exp.Query) -> Relation:
    raise UnsupportedError("a subquery")


def _pushed(part: exp.Expr, reader: ExpressionReader, alone: bool) -> str | None:
    """Return the condition over the table's own columns; None if it must not be pushed."""
    columns = list(part.find_all(exp.Column))
    if not columns or not (alone or all(column.table for column in columns)):
        return None
    try:
        expr = reader.expr(part)
    except UnsupportedError:
        return None
    if not expr.may_move:
        return None
    names = {output.column: output.name or "" for output in reader.scope.star}
    return expr.over(lambda column: quote(names[column]))


def _rows_must_pass(reference: exp.Table, select: exp.Select) -> bool:
    """Return whether WHERE filters the rows of the table itself, not null-extended ones."""
    source = select.args.get("from_")
    joins = select.args.get("joins") or []
    if any(join.side in ("RIGHT", "FULL") or join.method for join in joins):
        return False
    if source is not None and source.this is reference:
        return not reference.args.get("joins")
    return any(
        join.this is reference and not join.side and join.kind in ("", "INNER", "CROSS")
        for join in joins
    )


def _is_only_source(select: exp.Select) -> bool:
    return not select.args.get("joins") and not select.args.get("laterals")
