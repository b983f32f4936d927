"""Growing answers: queries that over fewer rows give fewer rows of the same answer (ADR 59).

A node *grows* if every row that it gives over some rows of the tables has a row of its own in what
it gives over more rows. Of its columns

- a *fixed* one has the same value in both rows,
- a *rising* one has the same value or a larger one in the second row (a null may become a value),
- a *falling* one has the same value or a smaller one (a null may become a value).

Nothing is known of any other column. The fixed columns of a growing query can be shown before all
rows have come: they are some of the rows of the answer. Each operator is decided here by itself, so
every place where a query reads a table may see other batches of it than the next place.

Rules
1. A condition stays true if it reads fixed columns only, if it compares a rising column from above
   or a falling one from below with fixed columns, or if AND and OR make it of such conditions.
2. Comparing keeps the order only between numbers, or between values of one type that has an order.
3. A group key is fixed only if equal values of its type are written in one way. Of -0.0 and 0.0, or
   of a day and 24 hours, a group shows any.
4. What is not listed here does not grow, and neither does a row without a table: there is nothing
   to wait for.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from caudal.sql.planner import dialect, type_inference, types
from caudal.sql.planner.algebra import (
    Aggregate,
    Constant,
    Context,
    Expr,
    Extend,
    Filter,
    FunctionCall,
    Join,
    Node,
    Relation,
    TableScan,
    Top,
    Union,
    Unnest,
    column_of,
)

_COUNTS = ("count", "count_if", "countif")
_ORDERED = ("VARCHAR", "DATE", "TIMESTAMP")
_UP, _DOWN = (exp.GT, exp.GTE), (exp.LT, exp.LTE)


@dataclass(frozen=True)
class Growth:
    """The columns of a growing node of which something is known."""

    fixed: frozenset[int]
    rising: frozenset[int] = frozenset()
    falling: frozenset[int] = frozenset()

    def beside(self, other: "Growth") -> "Growth":
        return Growth(
            self.fixed | other.fixed, self.rising | other.rising, self.falling | other.falling
        )

    def fixes(self, *exprs: Expr) -> bool:
        """Return whether the values of these expressions are fixed."""
        return all(expr.columns <= self.fixed and not expr.subqueries for expr in exprs)


def final_columns(relation: Relation, context: Context) -> tuple[int, ...]:
    """Return the places of a query's fixed columns; none if it does not grow."""
    growth = _GrowthRules(context).of(relation.node)
    if growth is None:
        return ()
    return tuple(n for n, output in enumerate(relation.outputs) if output.column in growth.fixed)


@dataclass(frozen=True)
class _GrowthRules:
    context: Context

    def of(self, node: Node) -> Growth | None:
        """Return how a node grows; None if that is not known."""
        match node:
            case TableScan() | Constant(columns=(_, *_)):
                return Growth(frozenset(node.columns))
            case Filter():
                return self._where(self.of(node.child), (node.predicate,))
            case Extend():
                return self._extended(node)
            case Unnest():
                child = self.of(node.child)
                fixed = child is not None and child.fixes(node.expr)
                return child.beside(Growth(frozenset([node.column]))) if child and fixed else None
            case Join(kind="INNER" | "SEMI"):
                return self._joined(node)
            case Aggregate():
                return self._grouped(node)
            case Union():
                return self._together(node)
            case Top(limit=None, offset=0):
                return self.of(node.child)
        return None

    def _where(self, growth: Growth | None, conditions: Iterable[Expr]) -> Growth | None:
        if growth is None:
            return None
        stay = all(_Condition(growth, self.context).stays(one) for one in conditions)
        return growth if stay else None

    def _extended(self, node: Extend) -> Growth | None:
        child = self.of(node.child)
        if child is None:
            return None
        same = {column: column_of(expr.text) for column, expr in node.computed.items()}
        return child.beside(
            Growth(
                frozenset(c for c, expr in node.computed.items() if child.fixes(expr)),
                frozenset(c for c, other in same.items() if other in child.rising),
                frozenset(c for c, other in same.items() if other in child.falling),
            )
        )

    def _joined(self, node: Join) -> Growth | None:
        left, right = self.of(node.left), self.of(node.right)
        if left is None or right is None:
            return None
        both = self._where(left.beside(right), node.conditions)
        return left if both is not None and node.kind == "SEMI" else both

    def _grouped(self, node: Aggregate) -> Growth | None:
        child = self.of(node.child)
        if child is None or not child.fixed.issuperset(node.keys):
            return None
        kinds = self.context.types
        known = {c: call for c, call in node.calls.items() if _is_fixed(call, child)}
        return Growth(
            frozenset(key for key in node.keys if types.has_one_form(kinds[key])),
            frozenset(c for c, call in known.items() if call.name in (*_COUNTS, "max", "bool_or")),
            frozenset(c for c, call in known.items() if call.name == "min"),
        )

    def _together(self, node: Union) -> Growth | None:
        fixed = set(node.columns)
        for child, inputs in zip(node.children, node.inputs, strict=True):
            growth = self.of(child)
            if growth is None:
                return None
            pairs = zip(node.columns, inputs, strict=True)
            fixed &= {column for column, one in pairs if one in growth.fixed}
        return Growth(frozenset(fixed))


def _is_fixed(call: FunctionCall, child: Growth) -> bool:
    """Return whether a call reads the same values of a row, however many rows there are."""
    return not call.order and child.fixes(*call.expressions())


@dataclass(frozen=True)
class _Condition:
    growth: Growth
    context: Context

    def stays(self, expr: Expr) -> bool:
        """Return whether a condition that is true of a row stays true of it (rule 1)."""
        return self.growth.fixes(expr) or self._stays(dialect.parse_expression(expr.text))

    def _stays(self, node: exp.Expr) -> bool:
        if self._is_fixed(node):
            return True
        if isinstance(node, exp.Paren):
            return self._stays(node.this)
        if isinstance(node, (exp.And, exp.Or)):
            return self._stays(node.left) and self._stays(node.right)
        if isinstance(node, _UP):
            return self._is_above(node.left, node.right)
        if isinstance(node, _DOWN):
            return self._is_above(node.right, node.left)
        return self._type(node) == "BOOLEAN" and self._column(node) in self.growth.rising

    def _is_above(self, larger: exp.Expr, smaller: exp.Expr) -> bool:
        """Return whether the first, once it is larger than the second, stays so."""
        rises = self._column(larger) in self.growth.rising and self._is_fixed(smaller)
        falls = self._column(smaller) in self.growth.falling and self._is_fixed(larger)
        return (rises or falls) and _keep_order(self._type(larger), self._type(smaller))

    def _is_fixed(self, node: exp.Expr) -> bool:
        return all(column_of(one.name) in self.growth.fixed for one in node.find_all(exp.Column))

    def _column(self, node: exp.Expr) -> int | None:
        inner = node.unnest()
        return column_of(inner.name) if isinstance(inner, exp.Column) else None

    def _type(self, node: exp.Expr) -> types.Type:
        def kind_of(column: exp.Column) -> types.Type:
            number = column_of(column.name)
            return self.context.types[number] if number is not None else None

        return type_inference.type_of(node, kind_of, self.context.functions)


def _keep_order(one: types.Type, two: types.Type) -> bool:
    return (types.is_numeric(one) and types.is_numeric(two)) or (one == two and one in _ORDERED)
