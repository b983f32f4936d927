"""Cuts a query's algebra into stages: each operator's rows are placed, and moved if they must be.

Rules
1. Filters, projections and unnesting stay where the rows are.
2. A scan sees one batch and nothing else. What needs more (a join, a subquery's value) closes it.
3. Of rows that tie under ORDER BY ... LIMIT those come first whose columns do, from left to right:
   neither batches nor partitions decide. Without ORDER BY, rows come as they were read, or, once
   they were partitioned, by their columns.
4. Rows are gathered only if they were reduced first, or if nothing else is right; the latter is
   noted as the reason why the query does not scale.
"""

import re
from dataclasses import dataclass, field, replace

from caudal.sql.planner import lower_aggregate, lower_join, types
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
from caudal.sql.planner.dialect import quoted
from caudal.sql.planner.placed_rows import Needed, PlacedRows, StageCutter, Wanted
from caudal.sql.planner.rewrite import rewritten
from caudal.sql.planner.select_block import SelectBlock

# To order by a literal changes nothing, and a whole number would be taken for a position.
_LITERAL = re.compile(r"\(*(-?[\d.]+(e[+-]?\d+)?|'([^']|'')*'|TRUE|FALSE|NULL)\)*", re.IGNORECASE)


@dataclass
class Lowering:
    """One query on its way into stages."""

    cutter: StageCutter
    reasons: list[str] = field(default_factory=list)
    _subqueries: dict[int, tuple[str, str]] = field(default_factory=dict)

    def piece(self, node: Node, needed: Needed, wanted: Wanted = ()) -> PlacedRows:
        """The node's rows, with at least the needed columns."""
        match node:
            case TableScan():
                return _table(node)
            case Constant():
                return self._constant(node)
            case Filter():
                return self._filter(node, needed, wanted)
            case Extend():
                return self._extend(node, needed, wanted)
            case Unnest():
                return self._unnest(node, needed)
            case Windows():
                return self._windows(node, needed)
            case Aggregate():
                return lower_aggregate.aggregated(self, node, wanted)
            case Join():
                return lower_join.joined(self, node, needed)
            case Union():
                return self._union(node, needed)
            case SetOperation():
                return lower_join.compared(self, node)
            case Top():
                return self._top(node, needed)

    def needs_all_rows(self, piece: PlacedRows, reason: str) -> None:
        """Notes that rows are worked on in one place though there may be many."""
        if not piece.reduced and reason not in self.reasons:
            self.reasons.append(reason)

    def prepared(
        self, piece: PlacedRows, needed: Needed, *exprs: Expr
    ) -> tuple[PlacedRows, tuple[Expr, ...]]:
        """The piece where these expressions can be evaluated, and they over stages' columns."""
        numbers = [number for expr in exprs for number in expr.subqueries]
        if not numbers:
            return piece, exprs
        kept = needed.union(*(expr.columns for expr in exprs))
        found = {number: self._subquery(number) for number in numbers}
        piece = self.cutter.spread(piece, kept).also_reading(stage for stage, _ in found.values())
        bound = tuple(
            replace(e, text=with_subqueries(e.text, lambda number: found[number][1])) for e in exprs
        )
        return piece, bound

    def _subquery(self, number: int) -> tuple[str, str]:
        """The stage that computes a subquery, and the SELECT that reads it."""
        if number not in self._subqueries:
            context = self.cutter.context
            relation = context.subqueries[number]
            columns = frozenset(output.column for output in relation.outputs)
            node = rewritten(relation.node, context)
            stage, names = self.cutter.stage(self.piece(node, columns), columns)
            listed = ", ".join(names[output.column] for output in relation.outputs)
            self._subqueries[number] = (stage, f"(SELECT {listed} FROM {stage})")
        return self._subqueries[number]

    def _constant(self, node: Constant) -> PlacedRows:
        if not node.columns:
            return PlacedRows((SelectBlock("(SELECT 1)", {}),), "one", reduced=True)
        names = {column: self.cutter.names.new() for column in node.columns}
        source = f"(VALUES {', '.join(node.rows)}) AS v({', '.join(names.values())})"
        return PlacedRows((SelectBlock(f"(SELECT * FROM {source})", names),), "one", reduced=True)

    def _filter(self, node: Filter, needed: Needed, wanted: Wanted) -> PlacedRows:
        piece = self.piece(node.child, needed | node.predicate.columns, wanted)
        piece, (predicate,) = self.prepared(piece, needed, node.predicate)
        return piece.each(lambda block: block.filtered(predicate, needed, self.cutter.names))

    def _extend(self, node: Extend, needed: Needed, wanted: Wanted) -> PlacedRows:
        computed = {c: expr for c, expr in node.computed.items() if c in needed}
        below = (needed - node.computed.keys()).union(*(e.columns for e in computed.values()))
        piece = self.piece(node.child, below, wanted)
        piece, exprs = self.prepared(piece, below, *computed.values())
        if not computed:
            return piece
        bound = dict(zip(computed, exprs, strict=True))
        return piece.each(lambda block: block.extended(bound))

    def _unnest(self, node: Unnest, needed: Needed) -> PlacedRows:
        kept = needed - {node.column}
        piece = self.piece(node.child, kept | node.expr.columns)
        piece, (expr,) = self.prepared(piece, kept, node.expr)
        names = self.cutter.names

        def unnested(block: SelectBlock) -> SelectBlock:
            plain = block.sealed(kept | expr.columns, names) if _must_seal(block) else block
            return plain.did("unnest").sealed(
                kept, names, (node.column, f"unnest({plain.text(expr)})")
            )

        return piece.each(unnested)

    def _windows(self, node: Windows, needed: Needed) -> PlacedRows:
        below = (needed - node.computed.keys()).union(
            *(expr.columns for expr in node.computed.values())
        )
        child = self.piece(node.child, below)
        child, exprs = self.prepared(child, below, *node.computed.values())
        piece = self._for_windows(child, below, node.partitions)
        block = piece.block.sealed(below, self.cutter.names).did("window")
        listed = [(c, block.text(e)) for c, e in zip(node.computed, exprs, strict=True)]
        sealed = block.sealed(needed, self.cutter.names, *listed)
        return replace(piece, blocks=(sealed,))

    def _for_windows(self, child: PlacedRows, needed: Needed, partitions: Needed) -> PlacedRows:
        """The rows where each window has all of its own."""
        kinds = self.cutter.context.types
        keys_here = child.keys if child.place == "fold" else None
        if keys_here and all(key.columns & partitions for key in keys_here):
            return child
        found = [(column, types.hashed((kinds[column],))) for column in sorted(partitions)]
        keys = [(Expr(mark(c), kinds[c]), kind) for c, kind in found if kind is not None]
        if keys and child.place != "one":
            return self.cutter.hashed(child, needed, keys)
        self.needs_all_rows(child, "window functions see all rows at once")
        return self.cutter.gathered(child, needed)

    def _union(self, node: Union, needed: Needed) -> PlacedRows:
        kept = [place for place, column in enumerate(node.columns) if column in needed]
        pieces = [
            self._branch(child, [inputs[p] for p in kept], [node.columns[p] for p in kept])
            for child, inputs in zip(node.children, node.inputs, strict=True)
        ]
        reduced = all(piece.reduced for piece in pieces)
        columns = frozenset(node.columns[p] for p in kept)
        if all(piece.place == "scan" for piece in pieces):
            together = PlacedRows(
                tuple(b for p in pieces for b in p.blocks), "scan", reduced=reduced
            )
            return together if self._same_types(node) else self.cutter.spread(together, columns)
        if any(piece.place == "one" for piece in pieces):
            pieces = [self.cutter.gathered(piece, columns) for piece in pieces]
        else:
            pieces = [self.cutter.spread(piece, columns) for piece in pieces]
        return replace(self._stacked(pieces, columns), reduced=reduced)

    def _branch(self, child: Node, inputs: list[int], columns: list[int]) -> PlacedRows:
        piece = self.piece(child, frozenset(inputs))
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

        return replace(piece.each(renamed), keys=None)

    def _same_types(self, node: Union) -> bool:
        """Whether every branch alone has the types of the whole."""
        kinds = self.cutter.context.types
        return all(types.is_certain(kinds[column]) for place, column in enumerate(node.columns))

    def _stacked(self, pieces: list[PlacedRows], columns: Needed) -> PlacedRows:
        new = {column: self.cutter.names.new() for column in sorted(columns)}
        selects = [
            f"({p.block.select([(p.block.columns[c], name) for c, name in new.items()])})"
            for p in pieces
        ]
        operators = tuple(dict.fromkeys(o for p in pieces for o in p.block.operators))
        block = SelectBlock(
            f"({' UNION ALL '.join(selects)})", new, operators=(*operators, "union")
        )
        return PlacedRows((block,), pieces[0].place).also_reading(
            i for p in pieces for i in p.inputs
        )

    def _top(self, node: Top, needed: Needed) -> PlacedRows:
        kept = needed.union(*(expr.columns for expr, _ in node.order))
        piece = self.piece(node.child, kept)
        piece, exprs = self.prepared(piece, kept, *(expr for expr, _ in node.order))
        after = [direction for _, direction in node.order]
        names = self.cutter.names

        ties: list[int] = []
        if node.order or not _in_order_of_files(piece):
            ties = sorted(needed - {column_of(expr.text) for expr, _ in node.order})

        def cut(block: SelectBlock, limit: int | None, offset: int) -> SelectBlock:
            must = block.is_cut or bool(block.costly & kept)
            plain = block.sealed(kept, names) if must else block
            texts = [(plain.text(expr), way) for expr, way in zip(exprs, after, strict=True)]
            if limit is not None or offset:
                texts += [(plain.columns[column], "") for column in ties]
            order = [text + way for text, way in texts if not _LITERAL.fullmatch(text)]
            return plain.topped(list(dict.fromkeys(order)), limit, offset)

        if node.limit is not None and piece.place != "one":
            local = piece.each(lambda block: cut(block, (node.limit or 0) + node.offset, 0))
            shared = len(piece.blocks) == 1 and self.cutter.registry.is_shared(
                piece.block, piece.place, piece.inputs, "gather"
            )
            piece = replace(piece if shared else local, reduced=True)
        return self.cutter.gathered(piece, kept).each(lambda b: cut(b, node.limit, node.offset))


def _table(node: TableScan) -> PlacedRows:
    columns = {number: quoted(name) for number, name in node.columns.items()}
    return PlacedRows((SelectBlock(quoted(node.table), columns, table=node.table),), "scan")


def _in_order_of_files(piece: PlacedRows) -> bool:
    """Whether the rows come as they were read, whatever the number of partitions."""
    stages = [StageCutter.is_scan(stage) for stage in piece.inputs]
    return piece.place == "scan" or (piece.place == "one" and all(stages))


def _must_seal(block: SelectBlock) -> bool:
    return block.is_cut or block.group is not None


def finished(lowering: Lowering, node: Node, columns: tuple[int, ...]) -> PlacedRows:
    """The whole query in one place."""
    needed = frozenset(columns)
    piece = lowering.piece(rewritten(node, lowering.cutter.context), needed)
    return lowering.cutter.gathered(piece, needed)
