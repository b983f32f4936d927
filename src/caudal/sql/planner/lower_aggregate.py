"""Lowering of GROUP BY: where grouping runs, and in how many steps.

Rules
1. Rows that are already hashed by group keys are grouped where they are.
2. If every aggregate has parts that merge exactly (`partial_aggregates.py`), the parts are computed
   where the rows are, hashed by key, and merged.
3. The argument of a DISTINCT aggregate becomes a further key of the parts, so that equal values
   meet in one partition. There can be only one such argument.
4. Otherwise the rows themselves are hashed by key and grouped there.
5. Without a key that can be hashed, the parts (or rows) are gathered.
"""

from dataclasses import dataclass, replace

from caudal.sql.planner import partial_aggregates, types
from caudal.sql.planner.algebra import Aggregate, Expr, FunctionCall, mark
from caudal.sql.planner.partial_aggregates import AggregateMerge
from caudal.sql.planner.placed_rows import Needed, OperatorLowering, PlacedRows, Wanted
from caudal.sql.planner.select_block import SelectBlock, is_name


def lower_aggregate(lowering: OperatorLowering, node: Aggregate, wanted: Wanted) -> PlacedRows:
    """Return the groups, made in one of the ways of `Grouping`."""
    keys = frozenset(node.keys)
    used = [expr for call in node.calls.values() for expr in call.expressions()]
    needed = keys.union(*(expr.columns for expr in used))
    child = lowering.lower(node.child, needed, _passed(node, wanted))
    child, bound = lowering.bind_subqueries(child, needed, *used)
    if any(expr.subqueries for expr in used):
        calls = _bind_calls(node.calls, dict(zip(used, bound, strict=True)))
        node = Aggregate(node.child, node.keys, calls)
    grouping = Grouping(lowering, node, needed, child)
    if child.place == "one":
        lowering.needs_all_rows(child, "rows are grouped in one place")
        return grouping.group_in_place(child)
    if node.keys and _is_hashed_by_keys(child, keys):
        return grouping.group_in_place(child)
    return grouping.group_by_key(wanted) if node.keys else grouping.group_everything()


def _passed(node: Aggregate, wanted: Wanted) -> Wanted:
    return wanted if {column for column, _ in wanted} <= set(node.keys) else ()


def _bind_calls(calls: dict[int, FunctionCall], bound: dict[Expr, Expr]) -> dict[int, FunctionCall]:
    return {
        column: replace(
            call,
            arguments=tuple(bound[a] for a in call.arguments),
            order=tuple((bound[e], way) for e, way in call.order),
            condition=bound[call.condition] if call.condition is not None else None,
        )
        for column, call in calls.items()
    }


def _is_hashed_by_keys(rows: PlacedRows, keys: frozenset[int]) -> bool:
    return (
        rows.place == "fold"
        and rows.keys is not None
        and len(rows.keys) > 0
        and all(key.columns & keys for key in rows.keys)
    )


@dataclass
class Grouping:
    """The ways to group the rows of `child`."""

    lowering: OperatorLowering
    node: Aggregate
    needed: Needed
    child: PlacedRows

    def group_in_place(self, rows: PlacedRows) -> PlacedRows:
        """Group rows that are already where all rows of their group are.

        Example::

            query:
                SELECT s.shop, list(t.town) AS towns FROM sales s JOIN shops t ON s.shop = t.shop
                GROUP BY s.shop
            plan:
                scan1   each batch of sales: read -> hashed by scan1_shop
                        may skip rows whose key is not in scan2, once complete
                scan2   each batch of shops: read -> hashed by scan2_shop
                        may skip rows whose key is not in scan1, once complete
                fold1   each partition of scan1, scan2: join, group -> gathered
                finish  all of fold1: read
        """
        calls = {c: partial_aggregates.complete(call) for c, call in self.node.calls.items()}
        word = "group" if self.node.calls or not self.node.keys else "distinct"
        grouped = rows.each(lambda block: self._group(block, self.node.keys, calls, word))
        return replace(grouped, reduced=True)

    def group_by_key(self, wanted: Wanted) -> PlacedRows:
        """Make partial groups, hash them by key, and merge them. Without parts, hash the rows.

        Example::

            query:
                SELECT shop, count(*) AS n FROM sales GROUP BY shop
            plan:
                scan1   each batch of sales: partial group -> hashed by scan1_shop
                fold1   each partition of scan1: group -> gathered
                finish  all of fold1: read
        """
        hashing = self._hash_keys(wanted)
        merge = partial_aggregates.merge(
            self.node.calls, self._types(), ordered=self.child.place == "scan"
        )
        if merge is None:
            if not hashing:
                self.lowering.needs_all_rows(self.child, "no group key can be hashed")
            return self.group_in_place(self._move(self.child, self.needed, hashing))
        parts = self._parts(merge)
        columns = frozenset((*self.node.keys, *merge.part_keys(), *merge.parts))
        moved = replace(self._move(parts, columns, hashing), reduced=True)
        return self._merge(moved, merge)

    def group_everything(self) -> PlacedRows:
        """Make one group of all rows: partial results, gathered and merged.

        Example::

            query:
                SELECT count(*) AS n, max(price) AS most FROM sales
            plan:
                scan1   each batch of sales: partial group -> gathered
                finish  all of scan1: group
        """
        cutter = self.lowering.cutter
        merge = partial_aggregates.merge(
            self.node.calls, self._types(), ordered=self.child.place == "scan"
        )
        if merge is None:
            self.lowering.needs_all_rows(self.child, "an aggregate over all rows has no parts")
            return self.group_in_place(cutter.gather(self.child, self.needed))
        parts = replace(self._parts(merge), reduced=True)
        columns = frozenset((*merge.part_keys(), *merge.parts))
        if not merge.keys:
            return self._merge(cutter.gather(parts, columns), merge)
        (key,) = merge.keys
        kind = types.hashed((self._types()[key],))
        if kind is None:
            return self._merge(cutter.gather(parts, columns), merge)
        moved = cutter.hash(parts, columns, [(Expr(mark(key), self._types()[key]), kind)])
        second = partial_aggregates.second(merge, cutter.context)
        halves = moved.each(lambda b: self._group(b, (), second.parts_text, "partial group"))
        gathered = cutter.gather(halves, frozenset(second.parts_text))
        return self._merge(gathered, second.merge)

    def _types(self) -> dict[int, types.Type]:
        return self.lowering.cutter.context.types

    def _hash_keys(self, wanted: Wanted) -> list[tuple[Expr, str]]:
        kinds = self._types()
        if wanted and {column for column, _ in wanted} <= set(self.node.keys):
            return [(Expr(mark(c), kinds[c]), kind) for c, kind in wanted]
        found = [(c, types.hashed((kinds[c],))) for c in self.node.keys]
        return [(Expr(mark(c), kinds[c]), kind) for c, kind in found if kind is not None]

    def _move(self, rows: PlacedRows, needed: Needed, keys: list[tuple[Expr, str]]) -> PlacedRows:
        cutter = self.lowering.cutter
        return cutter.hash(rows, needed, keys) if keys else cutter.gather(rows, needed)

    def _parts(self, merge: AggregateMerge) -> PlacedRows:
        child, names = self.child, self.lowering.cutter.names
        if merge.values:
            kept = self.needed | merge.values.keys()
            child = child.each(lambda block: block.extended(merge.values).sealed(kept, names))
        if merge.key_exprs:
            child = child.each(lambda block: block.extended(merge.key_exprs))
        keys = (*self.node.keys, *merge.part_keys())
        word = "partial group" if merge.parts else "distinct"
        return child.each(lambda block: self._group(block, keys, merge.parts, word))

    def _merge(self, rows: PlacedRows, merge: AggregateMerge) -> PlacedRows:
        names = self.lowering.cutter.names

        def merged(block: SelectBlock) -> SelectBlock:
            word = "group" if self.node.calls or not self.node.keys else "distinct"
            grouped = self._group(block, self.node.keys, merge.merged, word)
            if not merge.finals:
                return grouped
            if merge.must_seal:
                grouped = grouped.sealed(grouped.columns, names)
            final = grouped.extended(merge.finals)
            kept = (*self.node.keys, *self.node.calls)
            done = final.only({c: final.columns[c] for c in kept})
            return replace(done, operators=grouped.operators)

        return rows.each(merged)

    def _group(
        self, block: SelectBlock, keys: tuple[int, ...], calls: dict[int, Expr], word: str
    ) -> SelectBlock:
        names = self.lowering.cutter.names
        read = frozenset(keys).union(*(call.columns for call in calls.values()))
        repeated = block.costly & read
        must = block.is_cut or block.group is not None or bool(repeated)
        # GROUP BY a literal number would mean a position.
        if must or not all(is_name(block.columns[key]) for key in keys):
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
