"""Reading of a query into the algebra: WITH, set operations, and SELECT.

A common table expression is read again at every place that names it. Its work is still done once,
because equal stages become one (`stage_registry.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from caudal.sql.planner import from_clause, order_clause, select_clauses, types
from caudal.sql.planner.algebra import (
    Aggregate,
    Context,
    Expr,
    Node,
    Output,
    Relation,
    SetOperation,
    Top,
    Union,
    rename,
)
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.expressions import ExpressionReader
from caudal.sql.planner.plan import TableSchema
from caudal.sql.planner.scopes import Scope, ScopeSource
from caudal.sql.quoting import folded

_CLAUSES = frozenset(
    [
        "with_",
        "expressions",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "offset",
        "distinct",
        "kind",
        "qualify",
    ]
)
_SET_CLAUSES = frozenset(["with_", "this", "expression", "distinct", "order", "limit", "offset"])


def read_query(
    query: exp.Query, tables: Mapping[str, TableSchema], functions: Mapping[str, str]
) -> tuple[Relation, Context]:
    """Return the algebra of a query, and the types and subqueries that its columns refer to.

    `functions` are those that Caudal adds to SQL, with the types they return.
    """
    context = Context({name.lower(): types.normal(kind) for name, kind in functions.items()})
    named = {folded(name): (name, schema) for name, schema in tables.items()}
    return QueryReader(context, named, {}).query(query), context


@dataclass(frozen=True)
class CommonTable:
    query: exp.Query
    columns: tuple[str, ...]
    within: "QueryReader"


@dataclass(frozen=True)
class QueryReader:
    """Reads queries that may name these tables and common table expressions."""

    context: Context
    tables: Mapping[str, tuple[str, TableSchema]]  # folded name -> name, schema
    common: Mapping[str, CommonTable]

    def query(self, query: exp.Expr) -> Relation:
        """Return the algebra of a query. It names no column of an outer query."""
        inner = self._with(query)
        if isinstance(query, exp.Subquery):
            if set(_given(query)) - {"this"}:
                raise UnsupportedError("a parenthesised query with clauses of its own")
            return self.query(query.this)
        if isinstance(query, exp.SetOperation):
            return inner._set_operation(query)
        if isinstance(query, exp.Select):
            return inner._select(query)
        raise UnsupportedError("this kind of query is not split")

    def _with(self, query: exp.Expr) -> "QueryReader":
        clause = query.args.get("with_")
        if clause is None:
            return self
        if clause.args.get("recursive"):
            raise UnsupportedError("a recursive query")
        bound = self
        for table in clause.expressions:
            if table.args.get("key_expressions"):
                raise UnsupportedError("a recursive query")
            alias = table.args["alias"]
            names = tuple(column.name for column in alias.args.get("columns") or ())
            here = CommonTable(table.this, names, bound)
            common = {**bound.common, folded(alias.name): here}
            bound = QueryReader(self.context, self.tables, common)
        return bound

    def _set_operation(self, query: exp.SetOperation) -> Relation:
        if extra := set(_given(query)) - _SET_CLAUSES:
            raise UnsupportedError(f"a set operation with {', '.join(sorted(extra))}")
        left, right = self.query(query.this), self.query(query.expression)
        if len(left.outputs) != len(right.outputs):
            raise UnsupportedError("a set operation over different numbers of columns")
        kinds = self.context.types
        sides = tuple(tuple(o.column for o in side.outputs) for side in (left, right))
        columns = tuple(
            self.context.column(types.common((kinds[one], kinds[other])))
            for one, other in zip(*sides, strict=True)
        )
        node: Node
        if isinstance(query, exp.Union):
            node = Union((left.node, right.node), sides, columns)
            if query.args.get("distinct"):
                node = Aggregate(node, columns, {})
        else:
            name = "EXCEPT" if isinstance(query, exp.Except) else "INTERSECT"
            every = "" if query.args.get("distinct") else " ALL"
            node = SetOperation(left.node, right.node, name + every, (sides[0], sides[1]), columns)
        outputs = tuple(
            Output(output.name, column)
            for output, column in zip(left.outputs, columns, strict=True)
        )
        return Relation(self._ordered_outputs(query, node, outputs), outputs)

    def _ordered_outputs(
        self, query: exp.SetOperation, node: Node, outputs: tuple[Output, ...]
    ) -> Node:
        """Apply ORDER BY and LIMIT of a set operation, which name its output columns only."""
        order: list[tuple[Expr, str]] = []
        scope = Scope([ScopeSource(None, outputs)], list(outputs))
        reader = ExpressionReader(self.context, scope, self.query)
        for item in query.args["order"].expressions if query.args.get("order") else ():
            order.extend(order_clause.order_item(item, reader, outputs))
        limit, offset = order_clause.limits(query)
        if not order and limit is None and not offset:
            return node
        ties = tuple(output.column for output in outputs)
        return Top(node, tuple(order), limit, offset, ties)

    def _select(self, query: exp.Select) -> Relation:
        if extra := set(_given(query)) - _CLAUSES:
            raise UnsupportedError(f"a SELECT with {', '.join(sorted(extra))}")
        if query.args.get("kind"):
            raise UnsupportedError("SELECT AS is not split")
        node, scope = from_clause.read_from(query, self)
        reader = ExpressionReader(self.context, scope, self.query)
        return select_clauses.SelectReader(query, reader, self).read(node)

    def named(self, name: str) -> Relation | None:
        """Return the relation of a common table expression; None if there is none of this name."""
        found = self.common.get(folded(name))
        if found is None:
            return None
        relation = found.within.query(found.query)
        return rename(relation, found.columns)


def _given(query: exp.Expr) -> list[str]:
    return [key for key, value in query.args.items() if value]
