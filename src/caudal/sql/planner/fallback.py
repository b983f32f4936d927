"""The plan that is always right: gather what a query may need, then run the user's own text.

Rules
1. A column is left behind only if its name appears nowhere in the text and nothing in it (a star,
   COLUMNS, NATURAL, PIVOT, a whole row) could mean it without naming it. Every table keeps the
   columns of a name or none does, so leaving some behind cannot change what a name means.
2. A predicate is pushed into a scan only if it stands as a conjunct in the WHERE of the only SELECT
   that reads the table, names columns of that table alone, and the join keeps no row without it.
3. A text that cannot be parsed here gathers whole tables; DuckDB's parser names them.
"""

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError

from caudal.sql.planner import dialect, functions
from caudal.sql.planner.plan import TableSchema

_BY_POSITION = (exp.Pivot, exp.TableSample)


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
    if any(call.name.lower() == "columns" for call in query.find_all(exp.Anonymous)):
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
    own_functions: Collection[str],
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
    alias = (reference.alias or reference.name).lower()
    alone = _is_only_source(select)
    columns = {name.lower() for name in schemas[table]}
    return [
        _unqualified(conjunct)
        for conjunct in conjuncts(where.this)
        if _is_own(conjunct, alias, columns, alone) and _is_pure(conjunct, own_functions)
    ]


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """The parts that must all hold."""
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        return [*conjuncts(inner.left), *conjuncts(inner.right)]
    return [inner]


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


def _is_own(conjunct: exp.Expr, alias: str, columns: Collection[str], alone: bool) -> bool:
    if any(conjunct.find_all(exp.Query, exp.Window, exp.Lambda, exp.Placeholder)):
        return False
    found = list(conjunct.find_all(exp.Column))
    return bool(found) and all(
        column.name.lower() in columns
        and not column.args.get("db")
        and (column.table.lower() == alias if column.table else alone)
        for column in found
    )


def _is_pure(conjunct: exp.Expr, own_functions: Collection[str]) -> bool:
    calls = [call.name.lower() for call in conjunct.find_all(exp.Anonymous)]
    return all(functions.is_pure(name) or name in own_functions for name in calls)


def _unqualified(conjunct: exp.Expr) -> str:
    own = conjunct.copy()
    for column in own.find_all(exp.Column):
        column.set("table", None)
    return dialect.text(own)
