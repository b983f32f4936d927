"""Lowering: a query's algebra is cut into stages, operator by operator.

Each operator says where its rows have to be: with their batch (in a scan), with rows of equal keys
(in a partition of a fold), or all in one place. If they are elsewhere, a stage ends and the next
one begins. `Lowering.lower` lists the operators; each shows an example.

Rules
1. Filters, projections and UNNEST run where the rows are.
2. A scan sees one batch and nothing else. An operator that needs more (a join, the value of a
   subquery) ends the scan.
3. Under ORDER BY ... LIMIT, ties are broken by the other columns, from left to right, whether
   they are needed or not. So neither batches nor partitions nor readers decide which rows are kept.
   Without ORDER BY, rows come in the order of the files, or of windows; once they were partitioned,
   joined or grouped, they are ordered by their columns. The order of a subquery inside was moved
   here (`lift_orders.py`).
4. Rows are gathered only if they were reduced first, or if no other way is right. In the latter
   case the reason is kept: the query is gathered instead of scaled.
"""

import re
from dataclasses import dataclass, field, replace

from caudal.sql.planner import lower_aggregate, lower_join, ties, types
from caudal.sql.planner.algebra import (
    Aggregate,
    Constant,
    Expr,
    Extend,
    Filter,
    Join,
    Node,
    SetOperation,
    TableScan,
    Top,
    Union,
    Unnest,
    Windows,
    column_of,
    mark,
    with_subqueries,
)
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.placed_rows import Needed, PlacedRows, StageCutter, Wanted
from caudal.sql.planner.rules import rewrite_algebra
from caudal.sql.planner.select_block import SelectBlock
from caudal.sql.quoting import quote

# ORDER BY a literal changes nothing, and DuckDB takes a whole number for the position of a column.
_LITERAL = re.compile(r"\(*(-?[\d.]+(e[+-]?\d+)?|'([^']|'')*'|TRUE|FALSE|NULL)\)*", re.IGNORECASE)


@dataclass
class Lowering:
    """The lowering of one query."""

    cutter: StageCutter
    reasons: list[str] = field(default_factory=list)
    _subqueries: dict[int, tuple[str, str]] = field(default_factory=dict)

    def lower(self, node: Node, needed: Needed, wanted: Wanted = ()) -> PlacedRows:
        """Return the node's rows, with at least the needed columns.

        `wanted` is how the reader of the rows would like them hashed; it may be ignored.
        """
        match node:
            case TableScan():
                return lower_table(node)
            case Constant():
                return self.lower_constant(node)
            case Filter():
                return self.lower_filter(node, needed, wanted)
            case Extend():
                return self.lower_extend(node, needed, wanted)
            case Unnest():
                return self.lower_unnest(node, needed)
            case Windows():
                return self.lower_windows(node, needed)
            case Aggregate():
                return lower_aggregate.lower_aggregate(self, node, wanted)
            case Join():
                return lower_join.lower_join(self, node, needed)
            case Union():
                return self.lower_union(node, needed)
            case SetOperation():
                return lower_join.lower_set_operation(self, node)
            case Top():
                return self.lower_top(node, needed)

    def needs_all_rows(self, rows: PlacedRows, reason: str) -> None:
        """Note why rows are gathered although there may be many of them."""
        if not rows.reduced and reason not in self.reasons:
            self.reasons.append(reason)

    def bind_subqueries(
        self, rows: PlacedRows, needed: Needed, *exprs: Expr
    ) -> tuple[PlacedRows, tuple[Expr, ...]]:
        """Return the rows where these expressions can be evaluated, and the expressions.

        A subquery in an expression becomes a stage, which every partition reads as a whole.
        """
        numbers = [number for expr in exprs for number in expr.subqueries]
        if not numbers:
            return rows, exprs
        kept = needed.union(*(expr.columns for expr in exprs))
        found = {number: self._subquery(number) for number in numbers}
        rows = self.cutter.spread(rows, kept).also_reading(stage for stage, _ in found.values())
        bound = tuple(
            replace(e, text=with_subqueries(e.text, lambda number: found[number][1])) for e in exprs
        )
        return rows, bound

    def _subquery(self, number: int) -> tuple[str, str]:
        """Return the stage that computes a subquery, and the SELECT that reads it."""
        if number not in self._subqueries:
            context = self.cutter.context
            relation = context.subqueries[number]
            columns = frozenset(output.column for output in relation.outputs)
            node = rewrite_algebra(relation.node, context)
            stage, names = self.cutter.close_whole(self.lower(node, columns), columns)
            listed = ", ".join(names[output.column] for output in relation.outputs)
            self._subqueries[number] = (stage, f"(SELECT {listed} FROM {stage})")
        return self._subqueries[number]

    def lower_constant(self, node: Constant) -> PlacedRows:
        """Read rows that the query itself holds, in one place."""
        if not node.columns:
            return PlacedRows((SelectBlock("(SELECT 1)", {}),), "one", reduced=True)
        names = {column: self.cutter.names.new() for column in node.columns}
        source = f"(VALUES {', '.join(node.rows)}) AS v({', '.join(names.values())})"
        return PlacedRows((SelectBlock(f"(SELECT * FROM {source})", names),), "one", reduced=True)

    def lower_filter(self, node: Filter, needed: Needed, wanted: Wanted) -> PlacedRows:
        """Filter rows where they are.

        Example::

            query:
                SELECT id FROM sales WHERE price > 1
            plan:
                scan1   each batch of sales: filter -> gathered
                finish  all of scan1: read
        """
        rows = self.lower(node.child, needed | node.predicate.columns, wanted)
        rows, (predicate,) = self.bind_subqueries(rows, needed, node.predicate)
        return rows.each(lambda block: block.filtered(predicate, needed, self.cutter.names))

    def lower_extend(self, node: Extend, needed: Needed, wanted: Wanted) -> PlacedRows:
        """Compute the columns that are needed, where the rows are.

        Example::

            query:
                SELECT upper(shop) AS name FROM sales
            plan:
                scan1   each batch of sales: project -> gathered
                finish  all of scan1: read
        """
        computed = {c: expr for c, expr in node.computed.items() if c in needed}
        below = (needed - node.computed.keys()).union(*(e.columns for e in computed.values()))
        rows = self.lower(node.child, below, wanted)
        rows, exprs = self.bind_subqueries(rows, below, *computed.values())
        if not computed:
            return rows
        bound = dict(zip(computed, exprs, strict=True))
        return rows.each(lambda block: block.extended(bound))

    def lower_unnest(self, node: Unnest, needed: Needed) -> PlacedRows:
        """Make one row per element of a list, where the rows are.

        Example::

            query:
                SELECT id, tag FROM sales, unnest(tags) AS t(tag) WHERE tag = 'p'
            plan:
                scan1   each batch of sales: unnest, filter -> gathered
                finish  all of scan1: read
        """
        kept = needed - {node.column}
        rows = self.lower(node.child, kept | node.expr.columns)
        rows, (expr,) = self.bind_subqueries(rows, kept, node.expr)
        names = self.cutter.names

        def unnested(block: SelectBlock) -> SelectBlock:
            plain = block.sealed(kept | expr.columns, names) if _must_seal(block) else block
            return plain.did("unnest").sealed(
                kept, names, (node.column, f"unnest({plain.text(expr)})")
            )

        return rows.each(unnested)

    def lower_windows(self, node: Windows, needed: Needed) -> PlacedRows:
        """Bring the rows of each window's partition together, then compute the windows.

        Example::

            query:
                SELECT id, rank() OVER (PARTITION BY shop ORDER BY day) AS place FROM sales
            plan:
                scan1   each batch of sales: read -> hashed by scan1_shop
                fold1   each partition of scan1: window -> gathered
                finish  all of fold1: read
        """
        below = (needed - node.computed.keys()).union(
            *(expr.columns for expr in node.computed.values())
        )
        child = self.lower(node.child, below)
        child, exprs = self.bind_subqueries(child, below, *node.computed.values())
        rows = self._for_windows(child, below, node.partitions)
        block = rows.block.sealed(below, self.cutter.names).did("window")
        listed = [(c, block.text(e)) for c, e in zip(node.computed, exprs, strict=True)]
        sealed = block.sealed(needed, self.cutter.names, *listed)
        return replace(rows, blocks=(sealed,))

    def _for_windows(self, child: PlacedRows, needed: Needed, partitions: Needed) -> PlacedRows:
        """Return the rows where each window has all the rows of its partition."""
        kinds = self.cutter.context.types
        keys_here = child.keys if child.place == "fold" else None
        if keys_here and all(key.columns & partitions for key in keys_here):
            return child
        found = [(column, types.hashed((kinds[column],))) for column in sorted(partitions)]
        keys = [(Expr(mark(c), kinds[c]), kind) for c, kind in found if kind is not None]
        if keys and child.place != "one":
            return self.cutter.hash(child, needed, keys)
        self.needs_all_rows(child, "window functions see all rows at once")
        return self.cutter.gather(child, needed)

    def lower_union(self, node: Union, needed: Needed) -> PlacedRows:
        """Put the rows of all branches together, where they are if all of them are in scans.

        Example::

            query:
                SELECT shop, count(*) AS n FROM (FROM sales SELECT shop UNION ALL FROM shops
                SELECT shop) GROUP BY shop
            plan:
                scan1   each batch of sales: partial group -> hashed by scan1_shop
                scan2   each batch of shops: partial group -> hashed by scan2_shop
                fold1   each partition of scan1, scan2: union, group -> gathered
                finish  all of fold1: read
        """
        kept = [place for place, column in enumerate(node.columns) if column in needed]
        parts = [
            self._branch(child, [inputs[p] for p in kept], [node.columns[p] for p in kept])
            for child, inputs in zip(node.children, node.inputs, strict=True)
        ]
        reduced = all(rows.reduced for rows in parts)
        columns = frozenset(node.columns[p] for p in kept)
        if all(rows.place == "scan" for rows in parts):
            together = PlacedRows(
                tuple(b for p in parts for b in p.blocks), "scan", reduced=reduced
            )
            return together if self._same_types(node) else self.cutter.spread(together, columns)
        if any(rows.place == "one" for rows in parts):
            parts = [self.cutter.gather(rows, columns) for rows in parts]
        else:
            parts = [self.cutter.spread(rows, columns) for rows in parts]
        return replace(self._stacked(parts, columns), reduced=reduced)

    def _branch(self, child: Node, inputs: list[int], columns: list[int]) -> PlacedRows:
        rows = self.lower(child, frozenset(inputs))
        kinds = self.cutter.context.types

        def renamed(block: SelectBlock) -> SelectBlock:
            if _must_seal(block):
                block = block.sealed(frozenset(inputs), self.cutter.names)
            texts = {}
            for one, other in zip(inputs, columns, strict=True):
                text, to = block.columns[one], kinds[other]
                same = kinds[one] == to or not types.is_certain(to)
                texts[other] = text if same else f"CAST({text} AS {to})"
            return block.only(texts)

        return replace(rows.each(renamed), keys=None)

    def _same_types(self, node: Union) -> bool:
        """Return whether every branch alone has the types of the whole union."""
        kinds = self.cutter.context.types
        return all(types.is_certain(kinds[column]) for place, column in enumerate(node.columns))

    def _stacked(self, parts: list[PlacedRows], columns: Needed) -> PlacedRows:
        new = {column: self.cutter.names.new() for column in sorted(columns)}
        selects = [
            f"({p.block.select([(p.block.columns[c], name) for c, name in new.items()])})"
            for p in parts
        ]
        operators = tuple(dict.fromkeys(o for p in parts for o in p.block.operators))
        block = SelectBlock(
            f"({' UNION ALL '.join(selects)})", new, operators=(*operators, "union")
        )
        return PlacedRows((block,), parts[0].place).also_reading(i for p in parts for i in p.inputs)

    def lower_top(self, node: Top, needed: Needed) -> PlacedRows:
        """Cut rows where they are, gather what is left, order and cut it again.

        Example::

            query:
                SELECT id, price FROM sales ORDER BY price DESC LIMIT 3
            plan:
                scan1   each batch of sales: top -> gathered
                finish  all of scan1: top
        """
        kept = needed.union(*(expr.columns for expr, _ in node.order))
        if not node.cuts or (not node.order and ties.come_as_files_do(node.child)):
            node = replace(node, ties=())
        more = frozenset(node.ties) - kept
        if ties.may_raise(node.child, more, self.cutter.context.types):
            raise UnsupportedError("a column that nobody reads breaks ties, and may raise an error")
        kept |= more
        rows = self.lower(node.child, kept)
        if not node.order and _in_order_of_files(rows) and ties.stay_in_order(node.child):
            node = replace(node, ties=())
            if more and rows.place == "one":
                # Windows order the rows too, and DuckDB leaves out those that nobody reads.
                rows = self.cutter.settle(rows, kept)
        if node.limit is not None and rows.place != "one":
            rows = self._cut_in_parts(rows, node, kept)
        return self._cut(self.cutter.gather(rows, kept), node, kept)

    def _cut_in_parts(self, rows: PlacedRows, node: Top, kept: Needed) -> PlacedRows:
        """Keep the first rows of each batch or partition, unless others read all of them."""
        most = replace(node, limit=(node.limit or 0) + node.offset, offset=0)
        local = self._cut(rows, most, kept)
        shared = len(rows.blocks) == 1 and self.cutter.registry.is_shared(
            rows.block, rows.place, rows.inputs, "gather"
        )
        return replace(rows if shared else local, reduced=True)

    def _cut(self, rows: PlacedRows, node: Top, kept: Needed) -> PlacedRows:
        """Order the rows where they are, with `ties` as the last columns of the order, and cut."""
        rows, exprs = self.bind_subqueries(rows, kept, *(expr for expr, _ in node.order))
        ways = [way for _, way in node.order]

        def cut(block: SelectBlock) -> SelectBlock:
            must = block.is_cut or bool(block.costly & kept)
            plain = block.sealed(kept, self.cutter.names) if must else block
            texts = [(plain.text(expr), way) for expr, way in zip(exprs, ways, strict=True)]
            named = {column_of(expr.text) for expr, _ in node.order}
            texts += [(plain.columns[c], "") for c in node.ties if c not in named]
            order = [text + way for text, way in texts if not _LITERAL.fullmatch(text)]
            return plain.topped(list(dict.fromkeys(order)), node.limit, node.offset)

        return rows.each(cut)


def lower_table(node: TableScan) -> PlacedRows:
    """Read a table, batch by batch."""
    columns = {number: quote(name) for number, name in node.columns.items()}
    return PlacedRows((SelectBlock(quote(node.table), columns, table=node.table),), "scan")


def _in_order_of_files(rows: PlacedRows) -> bool:
    """Return whether the order of the rows is that of the files, for any number of partitions."""
    stages = [StageCutter.is_scan(stage) for stage in rows.inputs]
    return rows.place == "scan" or (rows.place == "one" and all(stages))


def _must_seal(block: SelectBlock) -> bool:
    return block.is_cut or block.group is not None


def lower_query(lowering: Lowering, node: Node, columns: tuple[int, ...]) -> PlacedRows:
    """Apply the rules to a whole query, lower it, and gather its rows in one place."""
    needed = frozenset(columns)
    rows = lowering.lower(rewrite_algebra(node, lowering.cutter.context), needed)
    return lowering.cutter.gather(rows, needed)
