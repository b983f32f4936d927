"""The syntax that the planner knows, as nodes of sqlglot's tree and their arguments.

Rules
1. A type of node that is not listed is unknown, and so is an argument that is not listed with its
   node. So a clause that a new version of sqlglot or DuckDB brings is unknown until it is listed
   here; it is never silently ignored.
2. Nodes of `_VERBATIM` are printed as they were parsed, with all their arguments.
3. Known syntax may still be refused by the code that reads it.
"""

from collections.abc import Callable

from sqlglot import exp

from caudal.sql.planner.algebra import PRIVATE
from caudal.sql.planner.dialect import UnsupportedError

_VERBATIM = (
    exp.Literal, exp.Null, exp.Boolean, exp.Identifier, exp.Var, exp.DataType, exp.DataTypeParam,
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is,
    exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Add,
    exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Paren, exp.Case, exp.If, exp.Cast,
    exp.TryCast, exp.DPipe, exp.Array, exp.Bracket, exp.Slice, exp.Interval, exp.Extract,
    exp.Substring, exp.Trim, exp.Tuple, exp.Struct, exp.PropertyEQ, exp.Lambda, exp.Dot,
    exp.WindowSpec, exp.ColumnDef, exp.IntervalSpan,
)  # fmt: skip
_SET = ("this", "expression", "distinct", "order", "limit", "offset", "with_")
_ARGUMENTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Select: (
        "with_", "expressions", "from_", "joins", "where", "group", "having", "qualify", "order",
        "limit", "offset", "distinct",
    ),
    exp.Union: _SET, exp.Except: _SET, exp.Intersect: _SET,
    exp.With: ("expressions",),
    exp.CTE: ("this", "alias", "materialized"),
    exp.From: ("this",),
    exp.Join: ("this", "side", "kind", "on", "using"),
    exp.Table: ("this", "alias", "db"),
    exp.TableAlias: ("this", "columns"),
    exp.Subquery: ("this", "alias"),
    exp.Values: ("expressions", "alias"),
    exp.Unnest: ("expressions", "alias"),
    exp.Where: ("this",), exp.Having: ("this",), exp.Qualify: ("this",),
    exp.Group: ("expressions", "all"),
    exp.Order: ("this", "expressions"),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Limit: ("expression",), exp.Offset: ("expression",),
    exp.Distinct: ("expressions",),
    exp.Star: ("except_",),
    exp.Alias: ("this", "alias"),
    exp.Column: ("this", "table"),
    exp.Anonymous: ("this", "expressions"),
    exp.Window: ("this", "partition_by", "order", "spec", "over"),
    exp.Filter: ("this", "expression"),
    exp.In: ("this", "expressions", "query"),
    exp.Exists: ("this",),
}  # fmt: skip


def require_understood(
    sql: str, tree: exp.Query, is_same: Callable[[str, exp.Query], bool]
) -> None:
    """Raise UnsupportedError unless every part of a text is read as DuckDB reads it.

    Both engines ask this before they conclude anything from the tree. `is_same` says whether DuckDB
    parses the text and the tree printed as SQL into the same statement.
    """
    require_no_marks(sql)
    unknown = find_unknown_syntax(tree)
    if unknown is not None:
        raise UnsupportedError(unknown)
    if not is_same(sql, tree):
        raise UnsupportedError("the planner does not parse its text as DuckDB does")


def require_no_marks(sql: str) -> None:
    """Raise UnsupportedError if a text holds characters that mark columns in the algebra."""
    if PRIVATE.search(sql):
        raise UnsupportedError("its text holds characters from U+E000 to U+E0FF")


def find_unknown_syntax(tree: exp.Expr) -> str | None:
    """Return the first part of the tree that is unknown, as a reason; None if all is known."""
    for node in tree.walk():
        if isinstance(node, exp.Tuple) and not node.expressions:
            return "() as a key is not split"  # no key, where an empty tuple is a value
        if isinstance(node, _VERBATIM):
            continue
        known = _ARGUMENTS.get(type(node))
        if known is None:
            return f"{_describe(node)} is not split"
        extra = [key for key, value in node.args.items() if value and key not in known]
        if extra:
            return _describe_arguments(node, sorted(extra))
    return None


def _describe_arguments(node: exp.Expr, extra: list[str]) -> str:
    if isinstance(node, exp.Join) and "method" in extra:
        return f"a {node.method} join"
    if isinstance(node, exp.With) and "recursive" in extra:
        return "a recursive query"
    if isinstance(node, exp.Distinct) and "on" in extra:
        return "DISTINCT ON depends on the order of rows"
    if isinstance(node, exp.Star):
        return f"* {extra[0].upper()} is not split"
    names = ", ".join(name.rstrip("_") for name in extra)
    return f"{_describe(node)} with {names} is not split"


def _describe(node: exp.Expr) -> str:
    return type(node).key.replace("_", " ")
