"""The plan that is always right: gather what a query may need, then run the user's own text.

Rules
1. A column is left behind only if its name appears nowhere in the text and nothing in it (a star,
   COLUMNS, NATURAL, PIVOT, SUMMARIZE, #1, a whole row, a text that is a query itself) could mean it
   without naming it. Every table keeps the columns of a name or none does, so leaving some behind
   cannot change what a name means.
2. A predicate is pushed into a scan only if it stands as a conjunct in the WHERE of the only SELECT
   that reads the table, names columns of that table alone, and the join keeps no row without it.
3. A text that cannot be parsed here gathers whole tables; DuckDB's parser names them.
"""

from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError

from caudal.sql.planner import dialect, expressions
from caudal.sql.planner.algebra import Context, Output, Relation
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.expressions import Reader
from caudal.sql.planner.plan import TableSchema
from caudal.sql.planner.scopes import Scope, Source

_BY_POSITION = (
    exp.Pivot, exp.TableSample, exp.PositionalColumn, exp.Summarize, exp.Describe, exp.Show,
)  # fmt: skip
_OF_TEXTS = ("columns", "query", "query_table")  # their arguments name columns or tables


def needed_columns(query: exp.Query, sql: str, schema: TableSchema) -> list[str]:
    """The columns of a table that the text can mean; at least one, since rows count too."""
    if _means_unnamed_columns(query, schema):
        return list(schema)
    words = _words(sql)
    needed = [name for name in schema if name.lower() in words]
    return needed or list(schema)[:1]


def _words(sql: str) -> set[str]:
    try:
        return {token.text.lower() for token in DuckDB().tokenize(sql)}
    except TokenError:  # pragma: no cover - the text was parsed from the same tokens
        return set()


def _means_unnamed_columns(query: exp.Query, schema: TableSchema) -> bool:
    if any(query.find_all(*_BY_POSITION)):
        return True
    if any(not _is_count_star(star) for star in query.find_all(exp.Star)):
        return True
    if any(call.name.lower() in _OF_TEXTS for call in query.find_all(exp.Anonymous)):
        return True
    if any(join.method or join.kind == "POSITIONAL" for join in query.find_all(exp.Join)):
        return True
    if any(alias.args.get("columns") for alias in query.find_all(exp.TableAlias)):
        return True
    relations = {name.lower() for name in _relation_names(query)}
    known = {name.lower() for name in schema}
    return any(
        column.name.lower() in relations and column.name.lower() not in known
        for column in query.find_all(exp.Column)
    )


def _relation_names(query: exp.Query) -> Iterator[str]:
    for table in query.find_all(exp.Table):
        yield table.name
    for alias in query.find_all(exp.TableAlias):
        yield alias.name


def _is_count_star(star: exp.Star) -> bool:
    call = star.parent
    return isinstance(call, exp.Anonymous) and call.name.lower() == "count"


def own_predicates(
    query: exp.Query,
    table: str,
    schemas: Mapping[str, TableSchema],
    own_functions: Mapping[str, str],
) -> list[str]:
    """Conditions on this table alone that a row must meet to matter, as SQL over its columns."""
    references = [node for node in query.find_all(exp.Table) if node.name.lower() == table.lower()]
    if len(references) != 1 or any(query.find_all(exp.With)):
        return []
    reference = references[0]
    select = reference.parent_select
    if not isinstance(select, exp.Select) or not _rows_must_pass(reference, select):
        return []
    where = select.args.get("where")
    if where is None:
        return []
    reader = _reader(reference, schemas[table], own_functions)
    alone = _is_only_source(select)
    pushed = (_pushed(part, reader, alone) for part in expressions.conjuncts(where.this))
    return [text for text in pushed if text is not None]


def _reader(reference: exp.Table, schema: TableSchema, own_functions: Mapping[str, str]) -> Reader:
    """Reads conditions that name this table's columns and nothing else."""
    context = Context(dict(own_functions))
    outputs = tuple(Output(name, context.column(kind)) for name, kind in schema.items())
    source = Source(reference.alias or reference.name, outputs)
    return Reader(context, Scope([source], list(outputs)), _no_subquery)


def _no_subquery(query: exp.Query) -> Relation:
    raise UnsupportedError("a subquery")


def _pushed(part: exp.Expr, reader: Reader, alone: bool) -> str | None:
    """The condition over the table's own columns, or None if it is not certain to be one."""
    columns = list(part.find_all(exp.Column))
    if not columns or not (alone or all(column.table for column in columns)):
        return None
    try:
        expr = reader.expr(part)
    except UnsupportedError:
        return None
    names = {output.column: output.name or "" for output in reader.scope.star}
    return expr.over(lambda column: dialect.quoted(names[column]))


def _rows_must_pass(reference: exp.Table, select: exp.Select) -> bool:
    """Whether the table stands where WHERE sees each of its rows as it is, not null-extended."""
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
