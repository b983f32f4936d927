"""Where grouping runs, and in how many steps.

Rules
1. Rows already hashed by group keys are grouped where they are.
2. If every aggregate has parts that can be merged exactly, parts are computed where the rows are,
   and merged by key.
3. One argument of DISTINCT aggregates becomes a key of the parts: equal values then meet.
4. Otherwise the rows themselves travel, hashed by key, and are grouped there.
5. Without any key to hash, the parts (or rows) are gathered.
"""

from dataclasses import dataclass, replace

from caudal.sql.planner import partial_aggregates, types
from caudal.sql.planner.algebra import Aggregate, Expr, FunctionCall, mark
from caudal.sql.planner.partial_aggregates import AggregateMerge
from caudal.sql.planner.placed_rows import Needed, OperatorLowering, PlacedRows, Wanted
from caudal.sql.planner.select_block import SelectBlock, is_atom


def aggregated(lowering: OperatorLowering, node: Aggregate, wanted: Wanted) -> PlacedRows:
    """The groups."""
    keys = frozenset(node.keys)
    used = [expr for call in node.calls.values() for expr in call.expressions()]
    needed = keys.union(*(expr.columns for expr in used))
    child = lowering.piece(node.child, needed, _passed(node, wanted))
    child, bound = lowering.prepared(child, needed, *used)
    if any(expr.subqueries for expr in used):
        calls = _rebound(node.calls, dict(zip(used, bound, strict=True)))
        node = Aggregate(node.child, node.keys, calls)
    step = _Grouping(lowering, node, needed, child)
    if child.place == "one":
        lowering.needs_all_rows(child, "rows are grouped in one place")
        return step.whole(child)
    if node.keys and _is_local(child, keys):
        return step.whole(child)
    return step.keyed(wanted) if node.keys else step.total()


def _passed(node: Aggregate, wanted: Wanted) -> Wanted:
    return wanted if {column for column, _ in wanted} <= set(node.keys) else ()


def _rebound(calls: dict[int, FunctionCall], bound: dict[Expr, Expr]) -> dict[int, FunctionCall]:
    return {
        column: replace(
            call,
            arguments=tuple(bound[a] for a in call.arguments),
            order=tuple((bound[e], way) for e, way in call.order),
            condition=bound[call.condition] if call.condition is not None else None,
        )
        for column, call in calls.items()
    }


def _is_local(piece: PlacedRows, keys: frozenset[int]) -> bool:
    return (
        piece.place == "fold"
        and piece.keys is not None
        and len(piece.keys) > 0
        and all(key.columns & keys for key in piece.keys)
    )


@dataclass
class _Grouping:
    lowering: OperatorLowering
    node: Aggregate
    needed: Needed
    child: PlacedRows

    def whole(self, piece: PlacedRows) -> PlacedRows:
        """All rows of a group are here."""
        calls = {c: partial_aggregates.complete(call) for c, call in self.node.calls.items()}
        word = "group" if self.node.calls or not self.node.keys else "distinct"
        grouped = piece.each(lambda block: self._grouped(block, self.node.keys, calls, word))
        return replace(grouped, reduced=True)

    def keyed(self, wanted: Wanted) -> PlacedRows:
        hashing = self._hash_keys(wanted)
        merge = partial_aggregates.merge(
            self.node.calls, self._types(), ordered=self.child.place == "scan"
        )
        if merge is None:
            if not hashing:
                self.lowering.needs_all_rows(self.child, "no group key can be hashed")
            return self.whole(self._moved(self.child, self.needed, hashing))
        parts = self._parts(merge)
        columns = frozenset((*self.node.keys, *merge.part_keys(), *merge.parts))
        moved = replace(self._moved(parts, columns, hashing), reduced=True)
        return self._merged(moved, merge)

    def total(self) -> PlacedRows:
        """One group over everything."""
        cutter = self.lowering.cutter
        merge = partial_aggregates.merge(
            self.node.calls, self._types(), ordered=self.child.place == "scan"
        )
        if merge is None:
            self.lowering.needs_all_rows(self.child, "an aggregate over all rows has no parts")
            return self.whole(cutter.gathered(self.child, self.needed))
        parts = replace(self._parts(merge), reduced=True)
        columns = frozenset((*merge.part_keys(), *merge.parts))
        if not merge.keys:
            return self._merged(cutter.gathered(parts, columns), merge)
        (key,) = merge.keys
        kind = types.hashed((self._types()[key],))
        if kind is None:
            return self._merged(cutter.gathered(parts, columns), merge)
        moved = cutter.hashed(parts, columns, [(Expr(mark(key), self._types()[key]), kind)])
        second = partial_aggregates.second(merge, cutter.context)
        halves = moved.each(lambda b: self._grouped(b, (), second.parts_text, "partial group"))
        gathered = cutter.gathered(halves, frozenset(second.parts_text))
        return self._merged(gathered, second.merge)

    def _types(self) -> dict[int, types.Type]:
        return self.lowering.cutter.context.types

    def _hash_keys(self, wanted: Wanted) -> list[tuple[Expr, str]]:
        kinds = self._types()
        if wanted and {column for column, _ in wanted} <= set(self.node.keys):
            return [(Expr(mark(c), kinds[c]), kind) for c, kind in wanted]
        found = [(c, types.hashed((kinds[c],))) for c in self.node.keys]
        return [(Expr(mark(c), kinds[c]), kind) for c, kind in found if kind is not None]

    def _moved(self, piece: PlacedRows, needed: Needed, keys: list[tuple[Expr, str]]) -> PlacedRows:
        cutter = self.lowering.cutter
        return cutter.hashed(piece, needed, keys) if keys else cutter.gathered(piece, needed)

    def _parts(self, merge: AggregateMerge) -> PlacedRows:
        child, names = self.child, self.lowering.cutter.names
        if merge.values:
            kept = self.needed | merge.values.keys()
            child = child.each(lambda block: block.extended(merge.values).sealed(kept, names))
        if merge.key_exprs:
            child = child.each(lambda block: block.extended(merge.key_exprs))
        keys = (*self.node.keys, *merge.part_keys())
        word = "partial group" if merge.parts else "distinct"
        return child.each(lambda block: self._grouped(block, keys, merge.parts, word))

    def _merged(self, piece: PlacedRows, merge: AggregateMerge) -> PlacedRows:
        names = self.lowering.cutter.names

        def merged(block: SelectBlock) -> SelectBlock:
            word = "group" if self.node.calls or not self.node.keys else "distinct"
            grouped = self._grouped(block, self.node.keys, merge.merged, word)
            if not merge.finals:
                return grouped
            if merge.must_seal:
                grouped = grouped.sealed(grouped.columns, names)
            final = grouped.extended(merge.finals)
            kept = (*self.node.keys, *self.node.calls)
            done = final.only({c: final.columns[c] for c in kept})
            return replace(done, operators=grouped.operators)

        return piece.each(merged)

    def _grouped(
        self, block: SelectBlock, keys: tuple[int, ...], calls: dict[int, Expr], word: str
    ) -> SelectBlock:
        names = self.lowering.cutter.names
        read = frozenset(keys).union(*(call.columns for call in calls.values()))
        repeated = block.costly & read
        must = block.is_cut or block.group is not None or bool(repeated)
        if must or not all(_can_group(block.columns[key]) for key in keys):
            block = block.sealed(read, names)
        columns = {key: block.columns[key] for key in keys}
        group = tuple(dict.fromkeys(columns.values()))
        columns.update({column: block.text(call) for column, call in calls.items()})
        costly = sorted({name for call in calls.values() for name in call.costly})
        done = block.did(*costly, word)
        raising = {columns[column] for column in calls} if self._may_fail() else set[str]()
        return replace(
            done,
            group=group,
            columns=columns,
            costly=frozenset(),
            raising=block.raising | raising,
        )

    def _may_fail(self) -> bool:
        calls = self.node.calls.values()
        return not all(expr.safe for call in calls for expr in call.expressions())


def _can_group(text: str) -> bool:
    """A name, not a literal: GROUP BY 1 would mean a position."""
    return is_atom(text) and not text.isdigit() and not text.startswith("'")
