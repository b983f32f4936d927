"""Lowering of joins and of set operations: partition by partition, or beside a whole small side.

Keys are used for partitioning only if equal values have equal hashes (`types.hashed`). One pair of
keys is enough, because rows that match agree in every pair. Rows with null keys have a partition
too, so outer and anti joins keep them.
"""

from dataclasses import dataclass, replace

from caudal.sql.planner import types
from caudal.sql.planner.algebra import (
    Expr,
    Join,
    SetOperation,
    column_of,
    columns_of,
    mark,
)
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.placed_rows import (
    Needed,
    OperatorLowering,
    PartitionKey,
    PlacedRows,
    Wanted,
)
from caudal.sql.planner.select_block import SelectBlock


@dataclass(frozen=True)
class JoinKeyPair:
    """Two expressions that must be equal, and the type in which both are hashed."""

    left: Expr
    right: Expr
    type: str


def lower_join(lowering: OperatorLowering, node: Join, needed: Needed) -> PlacedRows:
    """Return the rows of a join, made in one of the ways of `JoinPlacement`."""
    late = [c for c in node.conditions if c.subqueries]
    conditions = [c for c in node.conditions if not c.subqueries]
    if late and node.kind != "INNER":
        raise UnsupportedError("a subquery in the condition of this join")
    if any(condition.mixed for condition in conditions):
        raise UnsupportedError("a join that compares values of different types")
    kept = needed.union(*(c.columns for c in node.conditions))
    left_needed, right_needed = kept & columns_of(node.left), kept & columns_of(node.right)
    pairs = _pairs(node, conditions)
    left = lowering.lower(node.left, left_needed, _wanted(pairs, "left"))
    right = lowering.lower(node.right, right_needed, _wanted(pairs, "right"))
    placement = JoinPlacement(lowering, node, left_needed, right_needed, conditions)
    rows = placement.join(left, right, pairs)
    for condition in late:
        rows, (bound,) = lowering.bind_subqueries(rows, kept, condition)
        filtered = rows.block.filtered(bound, kept, lowering.cutter.names)
        rows = replace(rows, blocks=(filtered,))
    return rows


def _pairs(node: Join, conditions: list[Expr]) -> list[JoinKeyPair]:
    left, right = columns_of(node.left), columns_of(node.right)
    found = []
    for condition in conditions:
        if condition.sides is None:
            continue
        one, two = condition.sides
        if two.columns <= left and one.columns <= right:
            one, two = two, one
        kind = types.hashed((one.type, two.type))
        own = one.columns and two.columns and one.columns <= left and two.columns <= right
        if own and kind is not None:
            found.append(JoinKeyPair(one, two, kind))
    return found


def _wanted(pairs: list[JoinKeyPair], side: str) -> Wanted:
    """Return the columns by which one side is best hashed; none if a key is computed."""
    columns = [column_of((p.left if side == "left" else p.right).text) for p in pairs]
    if any(column is None for column in columns):
        return ()
    return tuple((c, p.type) for c, p in zip(columns, pairs, strict=True) if c is not None)


@dataclass
class JoinPlacement:
    """The ways to place a join."""

    lowering: OperatorLowering
    node: Join
    left_needed: Needed
    right_needed: Needed
    conditions: list[Expr]

    def join(self, left: PlacedRows, right: PlacedRows, pairs: list[JoinKeyPair]) -> PlacedRows:
        """Choose the way: with a side that is already in one place, by partition, or beside a
        whole side."""
        kind = self.node.kind
        if left.place == "one" and right.place == "one":
            return self.join_in_one_place(left, right)
        # Every partition reads the whole side, so no partition may give its rows on their own.
        right_may_be_whole = self.node.needs_partner("right")
        left_may_be_whole = self.node.needs_partner("left") and kind != "SEMI"
        if right.place == "one" and right_may_be_whole:
            return self.join_whole_right(left, right)
        if left.place == "one" and left_may_be_whole:
            return self.join_whole_left(left, right)
        if pairs and left.place != "one" and right.place != "one":
            return self.join_by_partition(left, right, pairs)
        if right_may_be_whole and left.place != "one":
            return self.join_whole_right(left, right)
        if left_may_be_whole and right.place != "one":
            return self.join_whole_left(left, right)
        for rows in (left, right):
            self.lowering.needs_all_rows(rows, f"this {kind.lower()} join has no key to split by")
        return self.join_in_one_place(left, right)

    def join_in_one_place(self, left: PlacedRows, right: PlacedRows) -> PlacedRows:
        """Gather both sides.

        Example::

            query:
                SELECT s.id, i.name FROM sales s FULL JOIN items i ON s.item < i.item
            strategy:
                gathered
            plan:
                because: this full join has no key to split by
                scan1   each batch of sales: read -> gathered
                scan2   each batch of items: read -> gathered
                finish  all of scan1, scan2: join
        """
        cutter = self.lowering.cutter
        one = cutter.gather(left, self.left_needed)
        two = cutter.gather(right, self.right_needed)
        return self._join_blocks_of(one, two, None)

    def join_whole_right(self, left: PlacedRows, right: PlacedRows) -> PlacedRows:
        """Join each part of the left side with the whole right side.

        Example::

            query:
                SELECT s.id, i.name FROM sales s LEFT JOIN items i ON s.item < i.item
            plan:
                scan1   each batch of items: read -> gathered
                scan2   each batch of sales: read -> spread as it lies
                fold1   each partition of scan2, scan1: join -> gathered
                finish  all of fold1: read
        """
        cutter = self.lowering.cutter
        stage, columns = cutter.close_whole(right, self.right_needed)
        whole = PlacedRows((SelectBlock(stage, columns),), "fold", (stage,))
        one = cutter.spread(left, self.left_needed)
        return self._join_blocks_of(one, whole, one.keys)

    def join_whole_left(self, left: PlacedRows, right: PlacedRows) -> PlacedRows:
        """Join the whole left side with each part of the right side.

        Example::

            query:
                SELECT s.id, i.name FROM sales s RIGHT JOIN items i ON s.item < i.item
            plan:
                scan1   each batch of sales: read -> gathered
                scan2   each batch of items: read -> spread as it lies
                fold1   each partition of scan1, scan2: join -> gathered
                finish  all of fold1: read
        """
        cutter = self.lowering.cutter
        stage, columns = cutter.close_whole(left, self.left_needed)
        whole = PlacedRows((SelectBlock(stage, columns),), "fold", (stage,))
        two = cutter.spread(right, self.right_needed)
        return self._join_blocks_of(whole, two, two.keys)

    def join_by_partition(
        self, left: PlacedRows, right: PlacedRows, pairs: list[JoinKeyPair]
    ) -> PlacedRows:
        """Hash both sides by the keys of the join, and join partition by partition.

        Example::

            query:
                SELECT s.id, t.town FROM sales s LEFT JOIN shops t ON s.shop = t.shop
            plan:
                scan1   each batch of sales: read -> hashed by scan1_shop
                scan2   each batch of shops: read -> hashed by scan2_shop
                        may skip rows whose key is not in scan1, once complete
                fold1   each partition of scan1, scan2: join -> gathered
                finish  all of fold1: read
        """
        cutter = self.lowering.cutter
        chosen = _aligned(left, [(p.left, p) for p in pairs]) or _aligned(
            right, [(p.right, p) for p in pairs]
        )
        chosen = chosen or pairs
        one, two = left, right
        if not _is_hashed_by(left, [(p.left, p.type) for p in chosen]):
            one = cutter.hash(left, self.left_needed, [(p.left, p.type) for p in chosen])
        if not _is_hashed_by(right, [(p.right, p.type) for p in chosen]):
            two = cutter.hash(right, self.right_needed, [(p.right, p.type) for p in chosen])
        if self.node.needs_partner("left"):
            _match(one, two, chosen[0].type)
        if self.node.needs_partner("right"):
            _match(two, one, chosen[0].type)
        return self._join_blocks_of(one, two, self._keys(one, two))

    def _keys(self, left: PlacedRows, right: PlacedRows) -> tuple[PartitionKey, ...] | None:
        kind = self.node.kind
        if kind == "INNER" and left.keys is not None and right.keys is not None:
            return tuple(
                PartitionKey(one.columns | two.columns, one.type)
                for one, two in zip(left.keys, right.keys, strict=True)
            )
        if kind == "FULL":
            return None
        return right.keys if kind == "RIGHT" else left.keys

    def _join_blocks_of(
        self, left: PlacedRows, right: PlacedRows, keys: tuple[PartitionKey, ...] | None
    ) -> PlacedRows:
        names = self.lowering.cutter.names
        one, two = left.block, right.block
        if not one.is_simple(self.left_needed, null_extended=self.node.null_extends("left")):
            one = one.sealed(self.left_needed, names)
        twice = set(left.inputs) & set(right.inputs)
        simple = two.is_simple(self.right_needed, null_extended=self.node.null_extends("right"))
        if twice or not simple or two.is_join:
            two = two.sealed(self.right_needed, names)
        block = _join_blocks(one, two, self.node.kind, self.conditions)
        selects = self.node.kind in ("SEMI", "ANTI")
        reduced = left.reduced or (right.reduced and not selects)
        rows = PlacedRows((block,), left.place, left.inputs, keys, reduced)
        return rows.also_reading(right.inputs)


def _match(dropped: PlacedRows, by: PlacedRows, kind: str) -> None:
    """Note that rows of `dropped` matter only if their key is among the keys of `by`."""
    if dropped.read is not None and by.read is not None:
        dropped.read.matched = by.read.stage
        dropped.read.type = kind


def _join_blocks(
    left: SelectBlock, right: SelectBlock, kind: str, conditions: list[Expr]
) -> SelectBlock:
    columns = {**left.columns, **right.columns}
    both = SelectBlock("", columns)
    operators = tuple(dict.fromkeys((*left.operators, *right.operators)))
    on = " AND ".join(f"({both.text(condition)})" for condition in conditions)
    word = "semi join" if kind == "SEMI" else "anti join" if kind == "ANTI" else "join"
    if conditions:
        source = f"{left.source} {kind} JOIN {right.source} ON {on}"
    elif kind == "INNER":
        source = f"{left.source} CROSS JOIN {right.source}"
    else:
        source = f"{left.source} {kind} JOIN {right.source} ON TRUE"
    kept = left.columns if kind in ("SEMI", "ANTI") else columns
    return SelectBlock(source, kept, operators=(*operators, word), is_join=True)


def _aligned(rows: PlacedRows, sides: list[tuple[Expr, JoinKeyPair]]) -> list[JoinKeyPair] | None:
    """Return the pairs in the order by which the rows are hashed, if each key is in a pair."""
    if rows.keys is None:
        return None
    chosen = []
    for key in rows.keys:
        match = [p for e, p in sides if column_of(e.text) in key.columns and p.type == key.type]
        if not match:
            return None
        chosen.append(match[0])
    return chosen


def _is_hashed_by(rows: PlacedRows, keys: list[tuple[Expr, str]]) -> bool:
    return (
        rows.keys is not None
        and len(rows.keys) == len(keys)
        and all(
            column_of(expr.text) in own.columns and kind == own.type
            for own, (expr, kind) in zip(rows.keys, keys, strict=True)
        )
    )


def lower_set_operation(lowering: OperatorLowering, node: SetOperation) -> PlacedRows:
    """Compare rows partition by partition: equal rows are in the same partition.

    Example::

        query:
            SELECT shop FROM sales EXCEPT SELECT shop FROM shops
        plan:
            scan1   each batch of sales: read -> hashed by scan1_shop
            scan2   each batch of shops: read -> hashed by scan2_shop
            fold1   each partition of scan1, scan2: except -> gathered
            finish  all of fold1: read
    """
    cutter = lowering.cutter
    kinds = cutter.context.types
    needed = [frozenset(columns) for columns in node.inputs]
    sides = [
        lowering.lower(child, columns)
        for child, columns in zip((node.left, node.right), needed, strict=True)
    ]
    pairs = [
        (Expr(mark(one), kinds[one]), Expr(mark(two), kinds[two]), kind)
        for one, two in zip(*node.inputs, strict=True)
        if (kind := types.hashed((kinds[one], kinds[two]))) is not None
    ]
    if pairs and all(rows.place != "one" for rows in sides):
        left = cutter.hash(sides[0], needed[0], [(one, kind) for one, _, kind in pairs])
        right = cutter.hash(sides[1], needed[1], [(two, kind) for _, two, kind in pairs])
    else:
        for rows in sides:
            lowering.needs_all_rows(rows, "rows cannot be compared partition by partition")
        left, right = (cutter.gather(p, n) for p, n in zip(sides, needed, strict=True))
    new = {column: cutter.names.new() for column in node.columns}
    selects = [
        rows.block.select(
            [(rows.block.columns[c], n) for c, n in zip(columns, new.values(), strict=True)]
        )
        for rows, columns in zip((left, right), node.inputs, strict=True)
    ]
    source = f"(({selects[0]}) {node.operation} ({selects[1]}))"
    operators = (*left.block.operators, *right.block.operators, node.operation.lower())
    block = SelectBlock(source, new, operators=tuple(dict.fromkeys(operators)))
    rows = PlacedRows((block,), left.place, left.inputs, None, left.reduced and right.reduced)
    return rows.also_reading(right.inputs)
