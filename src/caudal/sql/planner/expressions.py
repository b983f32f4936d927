"""Reading of expressions: names become columns, aggregates and windows are extracted.

Only the nodes listed here are accepted. Any other node raises UnsupportedError, and its query is
gathered: it is not known whether sqlglot prints it as it was written.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from caudal.sql import error_free
from caudal.sql.planner import (
    aggregate_calls,
    dialect,
    known_functions,
    scopes,
    type_inference,
    types,
)
from caudal.sql.planner.algebra import (
    Context,
    Expr,
    FunctionCall,
    Relation,
    column_of,
    mark,
    subquery_mark,
)
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.scopes import Scope
from caudal.sql.planner.select_block import RESERVED
from caudal.sql.planner.types import Type
from caudal.sql.quoting import folded

_LEAVES = (exp.Literal, exp.Null, exp.Boolean, exp.Identifier, exp.Var, exp.DataType)
_PLAIN = (
    exp.And, exp.Or, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Add, exp.Sub, exp.Mul,
    exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Paren, exp.Case, exp.If, exp.Cast, exp.TryCast,
    exp.DPipe, exp.Array, exp.Bracket, exp.Slice, exp.Interval, exp.Extract, exp.Substring,
    exp.Trim, exp.Tuple, exp.Struct, exp.PropertyEQ, exp.Lambda, exp.Dot, exp.Distinct,
)  # fmt: skip
_WINDOW_PARTS = (exp.WindowSpec, exp.Order, exp.Ordered)
BindQuery = Callable[[exp.Query], Relation]


@dataclass
class ExtractedCalls:
    """Calls that were extracted from expressions, by the columns that replace them."""

    calls: dict[int, FunctionCall] = field(default_factory=dict)
    windows: dict[int, Expr] = field(default_factory=dict)
    partitions: list[frozenset[int]] = field(default_factory=list)  # of each window


@dataclass
class ExpressionReader:
    """Reads the expressions of one SELECT."""

    context: Context
    scope: Scope
    bind_query: BindQuery
    aliases: dict[str, exp.Expr] = field(default_factory=dict)  # of the SELECT list, already read
    extracted: ExtractedCalls = field(default_factory=ExtractedCalls)
    keys: dict[str, int] | None = None  # text of a group key -> column; None: no grouping
    refuses_ambiguity: bool = False  # in HAVING and ORDER BY: of a column and an alias
    _known: dict[str, int] = field(default_factory=dict)  # text of an extracted call -> its column

    def expr(self, node: exp.Expr) -> Expr:
        """Return an expression, which must hold neither aggregates nor windows."""
        return self.make_expr(self.read(node))

    def make_expr(self, marked: exp.Expr) -> Expr:
        """Return the expression of a node that has marks for columns."""
        called = {call.name.lower() for call in marked.find_all(exp.Anonymous)}
        costly = frozenset(called & self.context.functions.keys())
        known = error_free.safe_type(marked, self._certain_type, self.context.functions)
        sides, mixed = None, False
        if isinstance(marked, exp.EQ):
            left, right = self.make_expr(marked.left), self.make_expr(marked.right)
            sides = (left, right) if known is not None else None
            mixed = is_mixed(left, right)
        text, kind, safe = dialect.text(marked), self.type_of(marked), known is not None
        return Expr(text, kind, costly, sides, safe=safe, mixed=mixed)

    def type_of(self, marked: exp.Expr) -> Type:
        return type_inference.type_of(marked, self._column_type, self.context.functions)

    def _column_type(self, column: exp.Column) -> Type:
        number = column_of(column.name)
        if number is not None:
            return self.context.types[number]
        return None

    def _certain_type(self, column: exp.Column) -> Type:
        kind = self._column_type(column)
        return kind if types.is_certain(kind) else None

    def read(self, node: exp.Expr) -> exp.Expr:
        """Return the node with marks for columns. Raise for aggregates and windows."""
        if isinstance(node, _LEAVES):
            return node.copy()
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Not):
            return exp.Paren(this=exp.Not(this=self.read(node.this)))
        if isinstance(node, (exp.Subquery, exp.Select)):
            return self._scalar_subquery(node)
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, exp.Exists):
            return exp.Exists(this=self._subquery(node.this))
        if isinstance(node, exp.Anonymous):
            self._require_pure(node.name)
            return rebuild(node, self.read)
        if isinstance(node, exp.Lambda):
            self._require_own_names(node)
        if isinstance(node, _PLAIN):
            return rebuild(node, self.read)
        raise UnsupportedError(f"{_describe(node)} is not split")

    def read_extracting(self, node: exp.Expr) -> exp.Expr:
        """Return the node with marks for columns. Aggregates and windows are extracted."""
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Filter) or aggregate_calls.is_aggregate(node):
            return self._aggregate(node)
        if isinstance(node, (exp.Subquery, exp.Select, exp.Exists, *_LEAVES)):
            return self.read(node)
        if not any(_is_extracted(inner) for inner in _own(node)):
            plain = self.read(node)
            if self.keys is None or self._is_alias(node):
                return plain
            key = self.keys.get(dialect.text(plain))
            if key is not None:
                return scopes.column_mark(key)
            if isinstance(node, exp.Column):
                raise UnsupportedError(f"{node.sql()} is not among the group keys")
        if isinstance(node, exp.Not):
            return exp.Paren(this=exp.Not(this=self.read_extracting(node.this)))
        if isinstance(node, exp.In) and node.args.get("query") is None:
            return rebuild(node, self.read_extracting)
        if isinstance(node, exp.Anonymous):
            self._require_pure(node.name)
            return rebuild(node, self.read_extracting)
        if isinstance(node, _PLAIN) and not isinstance(node, exp.Lambda):
            return rebuild(node, self.read_extracting)
        raise UnsupportedError(f"{_describe(node)} is not split")

    def _column(self, node: exp.Column) -> exp.Expr:
        alias = None if node.table else self.aliases.get(folded(node.name))
        own = self.scope.find(node.name) if alias is not None else None
        if alias is not None and own is None:
            return exp.Paren(this=alias.copy())
        if alias is not None and self.refuses_ambiguity and dialect.text(alias) != mark(own or 0):
            raise UnsupportedError(f"{node.name} is both a column and an alias")
        return scopes.resolve(node, self.scope)

    def _is_alias(self, node: exp.Expr) -> bool:
        """Return whether a name means an item of the SELECT list that was already read."""
        if not isinstance(node, exp.Column) or node.table:
            return False
        return folded(node.name) in self.aliases and self.scope.find(node.name) is None

    def _require_pure(self, name: str) -> None:
        if not known_functions.is_pure(name) and name.lower() not in self.context.functions:
            raise UnsupportedError(f"the function {name} runs only in the last stage")

    def _require_own_names(self, node: exp.Lambda) -> None:
        """Refuse a lambda with a parameter that may be mistaken for a column in its body.

        The parser minds the case of a parameter, and takes `s.x` for a field of the parameter `s`
        even if DuckDB takes it for a column of the table `s`. And in a stage, a column has the name
        that its table gives it, or one of those that the planner gives.
        """
        names = {folded(parameter.name) for parameter in node.expressions}
        columns = [folded(column.parts[0].name) for column in node.this.find_all(exp.Column)]
        taken = self.context.stored.union(columns) if columns else set[str]()
        fields = [dot.this.name for dot in node.this.find_all(exp.Dot)]
        if (
            not names.isdisjoint(taken)
            or (columns and any(map(RESERVED.fullmatch, names)))
            or any(folded(name) in names and self._is_source(name) for name in fields)
        ):
            raise UnsupportedError("a parameter of a lambda has the name of something else")

    def _is_source(self, name: str) -> bool:
        level: Scope | None = self.scope
        while level is not None and not level.has_source(name):
            level = level.parent
        return level is not None

    def _in(self, node: exp.In) -> exp.Expr:
        if node.args.get("query") is not None:
            return exp.In(this=self.read(node.this), field=self._subquery(node.args["query"]))
        if node.args.get("unnest") or node.args.get("field"):
            raise UnsupportedError("IN over a list is not split")
        return rebuild(node, self.read)

    def _scalar_subquery(self, node: exp.Expr) -> exp.Expr:
        if any(node.args.get(key) for key in ("alias", "joins", "pivots", "sample")):
            raise UnsupportedError("a subquery with an alias in an expression")
        return self._subquery(node)

    def _subquery(self, node: exp.Expr) -> exp.Column:
        query = node.unnest()
        if not isinstance(query, exp.Query):
            raise UnsupportedError(f"{_describe(query)} is not split")
        number = self.context.subquery(self.bind_query(query))
        return exp.Column(this=exp.Identifier(this=subquery_mark(number), quoted=False))

    def _window(self, node: exp.Window) -> exp.Expr:
        call = node.this.this if isinstance(node.this, exp.Filter) else node.this
        if not isinstance(call, exp.Anonymous) or not known_functions.is_window(call.name):
            raise UnsupportedError("this window function is not known")
        if node.args.get("alias"):
            raise UnsupportedError("a named window is not split")
        marked = self._window_part(node)
        column = self.context.column(aggregate_calls.type_of_call(call.name.lower(), []))
        self.extracted.windows[column] = Expr(dialect.text(marked))
        parts = [column_of(dialect.text(part)) for part in marked.args.get("partition_by") or ()]
        self.extracted.partitions.append(frozenset(part for part in parts if part is not None))
        return scopes.column_mark(column)

    def _window_part(self, node: exp.Expr) -> exp.Expr:
        """Return a part of a window with marks. Aggregates inside it belong to the groups."""
        if isinstance(node, (exp.Window, exp.Filter, exp.Where, *_WINDOW_PARTS)):
            if isinstance(node.this, exp.Anonymous) and isinstance(node, (exp.Window, exp.Filter)):
                read = rebuild(node, self._window_part)
                read.set("this", rebuild(node.this, self._window_part))
                return read
            return rebuild(node, self._window_part)
        if isinstance(node, (exp.Star, exp.Distinct)):
            return rebuild(node, self._window_part)
        if isinstance(node, exp.Anonymous) and _is_window_call(node):
            return node.copy()  # the caller replaces it, after reading its arguments
        return self.read_extracting(node)

    def _aggregate(self, node: exp.Expr) -> exp.Expr:
        if self.keys is None:
            raise UnsupportedError("an aggregate in a place where it is not split")
        # Inside an aggregate, a name that is a column and an alias means the column.
        reader = replace(self, refuses_ambiguity=False)
        call = aggregate_calls.aggregate_call(node, reader.expr)
        known = repr(call)
        if known not in self._known:
            column = self.context.column(call.type)
            self._known[known] = column
            self.extracted.calls[column] = call
        return scopes.column_mark(self._known[known])


def is_mixed(one: Expr, two: Expr) -> bool:
    """Return whether an equality between columns casts one of them in a way that may fail.

    Which rows are compared depends on how DuckDB runs the whole query, so a stage could fail where
    the query does not.
    """
    return bool(one.columns and two.columns) and not types.compare_safely(one.type, two.type)


def rebuild(node: exp.Expr, read: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return the same node with each child replaced by what `read` makes of it."""

    def child(value: Any) -> Any:
        if isinstance(value, exp.Expr):
            return read(value)
        if isinstance(value, list):
            return [child(item) for item in value]
        return value

    return type(node)(**{key: child(value) for key, value in node.args.items()})


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that AND joins."""
    found, waiting = [], [condition]
    while waiting:
        inner = waiting.pop().unnest()
        if isinstance(inner, exp.And):
            waiting += [inner.right, inner.left]
        else:
            found.append(inner)
    return found


def contains_aggregate(node: exp.Expr) -> bool:
    """Return whether the node holds an aggregate of its own SELECT."""
    return any(
        aggregate_calls.is_aggregate(inner) and not _inside_window(inner) for inner in _own(node)
    )


def _is_extracted(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Window, exp.Filter)) or aggregate_calls.is_aggregate(node)


def _inside_window(node: exp.Expr) -> bool:
    parent = node.parent
    if isinstance(parent, exp.Filter):
        parent = parent.parent
    return isinstance(parent, exp.Window) and (parent.this is node or parent.this is node.parent)


def _is_window_call(node: exp.Anonymous) -> bool:
    """Return whether the call is the window function itself, not an argument of it."""
    return isinstance(node.parent, (exp.Window, exp.Filter)) and node.parent.this is node


def _own(node: exp.Expr) -> list[exp.Expr]:
    """Return the node and all nodes in it, without those of subqueries."""
    return list(node.walk(prune=lambda inner: isinstance(inner, exp.Query)))


def _describe(node: exp.Expr) -> str:
    return type(node).key.replace("_", " ") if type(node).key else type(node).__name__
