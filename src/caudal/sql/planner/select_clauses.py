"""Reading of the clauses of one SELECT, in the order in which they take effect.

They are WHERE, GROUP BY, aggregates, HAVING, window functions, the SELECT list, DISTINCT, ORDER BY
and LIMIT.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from caudal.sql.planner import dialect, expressions, from_clause, order_clause, scopes
from caudal.sql.planner.algebra import (
    Aggregate,
    Expr,
    Extend,
    Filter,
    JoinKind,
    Node,
    Output,
    Relation,
    Top,
    Unnest,
    Windows,
    column_of,
    mark,
)
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.expressions import ExpressionReader
from caudal.sql.planner.scopes import QueryEnvironment
from caudal.sql.quoting import folded

Order = tuple[tuple[Expr, str], ...]


@dataclass
class SelectReader:
    """Reads one SELECT. `reader` resolves its names."""

    query: exp.Select
    reader: ExpressionReader
    within: QueryEnvironment
    outputs: list[Output] = field(default_factory=list)
    computed: dict[int, Expr] = field(default_factory=dict)
    unnested: tuple[int, Expr] | None = None

    def read(self, node: Node) -> Relation:
        """Return the relation of the SELECT over the rows of its FROM."""
        node = self._where(node)
        items = list(self._items())
        grouped = self._is_grouped(items)
        if grouped:
            node = self._with_keys(node, items)
        for item in items:
            self._output(item)
        self.reader.refuses_ambiguity = True
        having = self._condition_of("having")
        qualify = self._condition_of("qualify")
        order = self._order()
        if grouped:
            keys = tuple(dict.fromkeys((self.reader.keys or {}).values()))
            node = Aggregate(node, keys, self.reader.extracted.calls)
        if having is not None:
            node = Filter(node, having)
        return Relation(self._listed(node, order, qualify), tuple(self.outputs))

    def _listed(self, node: Node, order: Order, qualify: Expr | None) -> Node:
        windows = self.reader.extracted.windows
        if windows:
            shared = frozenset.intersection(*self.reader.extracted.partitions)
            inlined = {column: self._inlined(expr) for column, expr in windows.items()}
            node = Windows(node, inlined, shared - self.computed.keys())
        if qualify is not None:
            node = Filter(node, qualify)
        if self.unnested is not None:
            node = Unnest(node, *self.unnested)
        if self.computed:
            node = Extend(node, self.computed)
        if (distinct := self.query.args.get("distinct")) is not None:
            if distinct.args.get("on") is not None:
                raise UnsupportedError("DISTINCT ON depends on the order of rows")
            columns = tuple(dict.fromkeys(output.column for output in self.outputs))
            if any(expr.columns - set(columns) for expr, _ in order):
                raise UnsupportedError("DISTINCT with ORDER BY something that it does not list")
            node = Aggregate(node, columns, {})
        limit, offset = order_clause.limits(self.query)
        if order or limit is not None or offset:
            ties = tuple(dict.fromkeys(output.column for output in self.outputs))
            node = Top(node, order, limit, offset, ties)
        return node

    def _where(self, node: Node) -> Node:
        where = self.query.args.get("where")
        if where is None:
            return node
        for part in expressions.conjuncts(where.this):
            node = self._condition(node, part)
        return node

    def _condition(self, node: Node, part: exp.Expr) -> Node:
        negated = isinstance(part, exp.Not) and isinstance(part.this.unnest(), exp.Exists)
        exists = part.this.unnest() if negated else part
        if isinstance(exists, exp.Exists) and _is_plain_select(exists.this):
            return self._exists(node, exists.this, "ANTI" if negated else "SEMI")
        if isinstance(part, exp.In) and part.args.get("query") is not None:
            return self._in(node, part)
        reader = ExpressionReader(
            self.reader.context, self.reader.scope, self.reader.bind_query, self._aliases()
        )
        return Filter(node, reader.expr(part))

    def _aliases(self) -> dict[str, exp.Expr]:
        """Return the items of the SELECT list that WHERE and GROUP BY may call by their alias."""
        found: dict[str, exp.Expr] = {}
        for item in self.query.expressions:
            if isinstance(item, exp.Alias) and not any(item.find_all(exp.Query)):
                try:
                    found[folded(item.alias)] = self.reader.read(item.this)
                except UnsupportedError:
                    continue
        return found

    def _exists(self, node: Node, query: exp.Select, kind: JoinKind) -> Node:
        inner, scope = from_clause.read_from(query, self.within)
        scope.parent = self.reader.scope
        reader = ExpressionReader(self.reader.context, scope, self.reader.bind_query)
        where = query.args.get("where")
        parts = expressions.conjuncts(where.this) if where is not None else []
        conditions = [reader.expr(part) for part in parts]
        return from_clause.semi_join(node, kind, Relation(inner, ()), conditions)

    def _in(self, node: Node, part: exp.In) -> Node:
        right = self.reader.bind_query(part.args["query"])
        sides = part.this.expressions if isinstance(part.this, exp.Tuple) else [part.this]
        if len(sides) != len(right.outputs):
            raise UnsupportedError("IN over a different number of columns")
        reader = ExpressionReader(
            self.reader.context, self.reader.scope, self.reader.bind_query, self._aliases()
        )
        conditions = [
            from_clause.equality(
                reader.expr(side),
                Expr(mark(output.column), self.reader.context.types[output.column], safe=True),
            )
            for side, output in zip(sides, right.outputs, strict=True)
        ]
        return from_clause.semi_join(node, "SEMI", right, conditions)

    def _items(self) -> Iterator[exp.Expr | Output]:
        """Yield the items of the SELECT list, with columns in place of stars."""
        for item in self.query.expressions:
            if isinstance(item, exp.Star):
                yield from _expanded(item, self.reader.scope.star)
            elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                yield from _expanded(item.this, self.reader.scope.star_of(item.table), item.table)
            else:
                yield item

    def _is_grouped(self, items: list[exp.Expr | Output]) -> bool:
        if self.query.args.get("group") or self.query.args.get("having"):
            return True
        order = self.query.args.get("order")
        nodes = [item for item in items if isinstance(item, exp.Expr)]
        nodes += order.expressions if order else []
        return any(expressions.contains_aggregate(node) for node in nodes)

    def _with_keys(self, node: Node, items: list[exp.Expr | Output]) -> Node:
        """Return the rows with the group keys as columns, and tell the reader these keys."""
        self.reader.keys = {}
        aliases = self._aliases()
        computed: dict[int, Expr] = {}
        for key in self._key_nodes(items):
            marked = self._key(key, aliases)
            expr = self.reader.make_expr(marked)
            column = column_of(expr.text)
            if column is None:
                column = self.reader.context.column(expr.type)
                computed[column] = expr
            self.reader.keys.setdefault(expr.text, column)
        return Extend(node, computed) if computed else node

    def _key_nodes(self, items: list[exp.Expr | Output]) -> list[exp.Expr | Output]:
        group = self.query.args.get("group")
        if group is None:
            return []
        if group.args.get("all"):
            keys = [
                item
                for item in items
                if isinstance(item, Output) or not expressions.contains_aggregate(item)
            ]
            if not any(isinstance(key, Output) or key.find(exp.Column) for key in keys):
                raise UnsupportedError("GROUP BY ALL without a column")
            return keys
        if {key for key, value in group.args.items() if value} - {"expressions"}:
            raise UnsupportedError("grouping sets")
        return [
            items[int(key.name) - 1] if isinstance(key, exp.Literal) and key.is_int else key
            for key in group.expressions
        ]

    def _key(self, key: exp.Expr | Output, aliases: dict[str, exp.Expr]) -> exp.Expr:
        if isinstance(key, Output):
            return scopes.column_mark(key.column)
        node = key.this if isinstance(key, exp.Alias) else key
        if isinstance(node, exp.Column) and not node.table:
            alias = aliases.get(folded(node.name))
            own = self.reader.scope.find(node.name)
            if alias is not None and own is None:
                return alias.copy()
            if alias is not None and dialect.text(alias) != mark(own or 0):
                raise UnsupportedError(f"{node.name} is both a column and an alias")
        return self.reader.read(node.unnest())

    def _output(self, item: exp.Expr | Output) -> None:
        if isinstance(item, Output):
            if self.reader.keys is not None and item.column not in self.reader.keys.values():
                raise UnsupportedError(f"{item.name} is not among the group keys")
            self.outputs.append(item)
            return
        node = item.this if isinstance(item, exp.Alias) else item
        name = item.alias if isinstance(item, exp.Alias) else _own_name(node)
        column = self._unnest(node) if _is_unnest(node) else self._computed(node)
        self.outputs.append(Output(name, column))
        if name is not None:
            self.reader.aliases.setdefault(folded(name), scopes.column_mark(column))

    def _computed(self, node: exp.Expr) -> int:
        expr = self.reader.make_expr(self.reader.read_extracting(node))
        column = column_of(expr.text)
        if column is None:
            column = self.reader.context.column(expr.type)
            self.computed[column] = self._inlined(expr)
        return column

    def _inlined(self, expr: Expr) -> Expr:
        """Return the expression with lateral aliases replaced by what they stand for."""

        def name(column: int) -> str:
            known = self.computed.get(column)
            return f"({known.text})" if known is not None else mark(column)

        inlined = [self.computed[c] for c in expr.columns if c in self.computed]
        safe = expr.safe and all(one.safe for one in inlined)
        return Expr(expr.over(name), expr.type, expr.costly, safe=safe)

    def _unnest(self, node: exp.Expr) -> int:
        if self.unnested is not None or self.reader.keys is not None:
            raise UnsupportedError("this use of unnest is not split")
        expr = self.reader.expr(node.expressions[0])
        if len(node.expressions) != 1 or expr.type is None or not expr.type.endswith("[]"):
            raise UnsupportedError("unnest of something that is not known to be a list")
        column = self.reader.context.column(expr.type[:-2])
        self.unnested = (column, self._inlined(expr))
        return column

    def _condition_of(self, clause: str) -> Expr | None:
        """Return the condition of HAVING or QUALIFY."""
        node = self.query.args.get(clause)
        if node is None:
            return None
        before = len(self.reader.extracted.windows)
        read = self._inlined(self.reader.make_expr(self.reader.read_extracting(node.this)))
        windows = self.reader.extracted.windows.keys()
        if clause == "having" and (before != len(windows) or read.columns & windows):
            raise UnsupportedError("HAVING over window functions")
        if clause == "qualify" and self.unnested is not None:
            raise UnsupportedError("QUALIFY with unnest")
        return read

    def _order(self) -> Order:
        order = self.query.args.get("order")
        if order is None:
            return ()
        found: list[tuple[Expr, str]] = []
        for item in order.expressions:
            found.extend(order_clause.order_item(item, self.reader, tuple(self.outputs)))
        return tuple(found)


def _expanded(
    star: exp.Star, columns: list[Output], table: str = ""
) -> Iterator[exp.Expr | Output]:
    """Yield the columns of a star, or of the star of one table, without those of EXCLUDE."""
    if star.args.get("replace") or star.args.get("rename"):
        raise UnsupportedError("* REPLACE is not split")
    excluded = star.args.get("except_") or ()
    tables = {folded(column.table) for column in excluded if isinstance(column, exp.Column)}
    if tables - {"", folded(table)}:
        raise UnsupportedError("* EXCLUDE with the column of one table is not split")
    left_out = {folded(column.name) for column in excluded}
    yield from (o for o in columns if folded(o.name or "") not in left_out)


def _is_plain_select(query: exp.Expr) -> bool:
    """Return whether FROM and WHERE alone decide whether a SELECT has rows."""
    if not isinstance(query, exp.Select):
        return False
    given = {key for key, value in query.args.items() if value}
    aggregated = any(expressions.contains_aggregate(item) for item in query.expressions)
    unnested = any(_is_unnest(call) for call in query.find_all(exp.Anonymous))
    clauses = {"expressions", "from_", "joins", "where"}
    return given <= clauses and not aggregated and not unnested


def _is_unnest(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "unnest"


def _own_name(node: exp.Expr) -> str | None:
    """Return DuckDB's name for an item without an alias; None if it is not certain."""
    return node.name if isinstance(node, exp.Column) else None
