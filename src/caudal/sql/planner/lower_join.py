"""Where joins and set operations run: beside partitions of equal keys, or a whole small side.

A pair of keys is used for partitioning only if equal values hash equally (`types.hashed`). Any one
pair is enough, for rows that match agree in every pair. Rows with null keys have a partition too,
so outer and anti joins keep them.
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


def joined(lowering: OperatorLowering, node: Join, needed: Needed) -> PlacedRows:
    """The join of two pieces."""
    late = [c for c in node.conditions if c.subqueries]
    conditions = [c for c in node.conditions if not c.subqueries]
    if late and node.kind != "INNER":
        raise UnsupportedError("a subquery in the condition of this join")
    if any(condition.mixed for condition in conditions):
        raise UnsupportedError("a join that compares values of different types")
    kept = needed.union(*(c.columns for c in node.conditions))
    left_needed, right_needed = kept & columns_of(node.left), kept & columns_of(node.right)
    pairs = _pairs(node, conditions)
    left = lowering.piece(node.left, left_needed, _wanted(pairs, "left"))
    right = lowering.piece(node.right, right_needed, _wanted(pairs, "right"))
    joining = _JoinPlacement(lowering, node, left_needed, right_needed, conditions)
    piece = joining.placed(left, right, pairs)
    for condition in late:
        piece, (bound,) = lowering.prepared(piece, kept, condition)
        filtered = piece.block.filtered(bound, kept, lowering.cutter.names)
        piece = replace(piece, blocks=(filtered,))
    return piece


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
    """The columns of one side that rows would best be hashed by; empty if some are computed."""
    columns = [column_of((p.left if side == "left" else p.right).text) for p in pairs]
    if any(column is None for column in columns):
        return ()
    return tuple((c, p.type) for c, p in zip(columns, pairs, strict=True) if c is not None)


@dataclass
class _JoinPlacement:
    lowering: OperatorLowering
    node: Join
    left_needed: Needed
    right_needed: Needed
    conditions: list[Expr]

    def placed(self, left: PlacedRows, right: PlacedRows, pairs: list[JoinKeyPair]) -> PlacedRows:
        kind = self.node.kind
        if left.place == "one" and right.place == "one":
            return self._together(left, right)
        right_may_be_whole = kind in ("INNER", "LEFT", "SEMI", "ANTI")
        left_may_be_whole = kind in ("INNER", "RIGHT")
        if right.place == "one" and right_may_be_whole:
            return self._with_whole_right(left, right)
        if left.place == "one" and left_may_be_whole:
            return self._with_whole_left(left, right)
        if pairs and left.place != "one" and right.place != "one":
            return self._partitioned(left, right, pairs)
        if right_may_be_whole and left.place != "one":
            return self._with_whole_right(left, right)
        if left_may_be_whole and right.place != "one":
            return self._with_whole_left(left, right)
        for piece in (left, right):
            self.lowering.needs_all_rows(piece, f"this {kind.lower()} join has no key to split by")
        return self._together(left, right)

    def _together(self, left: PlacedRows, right: PlacedRows) -> PlacedRows:
        cutter = self.lowering.cutter
        one = cutter.gathered(left, self.left_needed)
        two = cutter.gathered(right, self.right_needed)
        return self._piece(one, two, None)

    def _with_whole_right(self, left: PlacedRows, right: PlacedRows) -> PlacedRows:
        cutter = self.lowering.cutter
        stage, columns = cutter.stage(right, self.right_needed)
        whole = PlacedRows((SelectBlock(stage, columns),), "fold", (stage,))
        one = cutter.spread(left, self.left_needed)
        return self._piece(one, whole, one.keys)

    def _with_whole_left(self, left: PlacedRows, right: PlacedRows) -> PlacedRows:
        cutter = self.lowering.cutter
        stage, columns = cutter.stage(left, self.left_needed)
        whole = PlacedRows((SelectBlock(stage, columns),), "fold", (stage,))
        two = cutter.spread(right, self.right_needed)
        return self._piece(whole, two, two.keys)

    def _partitioned(
        self, left: PlacedRows, right: PlacedRows, pairs: list[JoinKeyPair]
    ) -> PlacedRows:
        cutter = self.lowering.cutter
        chosen = _aligned(left, [(p.left, p) for p in pairs]) or _aligned(
            right, [(p.right, p) for p in pairs]
        )
        chosen = chosen or pairs
        one, two = left, right
        if not _is_hashed_by(left, [(p.left, p.type) for p in chosen]):
            one = cutter.hashed(left, self.left_needed, [(p.left, p.type) for p in chosen])
        if not _is_hashed_by(right, [(p.right, p.type) for p in chosen]):
            two = cutter.hashed(right, self.right_needed, [(p.right, p.type) for p in chosen])
        kind, hashed = self.node.kind, chosen[0].type
        if kind in ("INNER", "RIGHT", "SEMI"):
            _match(one, two, hashed)
        if kind in ("INNER", "LEFT", "SEMI", "ANTI"):
            _match(two, one, hashed)
        return self._piece(one, two, self._keys(one, two))

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

    def _piece(
        self, left: PlacedRows, right: PlacedRows, keys: tuple[PartitionKey, ...] | None
    ) -> PlacedRows:
        names = self.lowering.cutter.names
        one, two = left.block, right.block
        if not one.is_simple(self.left_needed):
            one = one.sealed(self.left_needed, names)
        twice = set(left.inputs) & set(right.inputs)
        if twice or not two.is_simple(self.right_needed) or " JOIN " in two.source:
            two = two.sealed(self.right_needed, names)
        block = _joined_blocks(one, two, self.node.kind, self.conditions)
        selects = self.node.kind in ("SEMI", "ANTI")
        reduced = left.reduced or (right.reduced and not selects)
        piece = PlacedRows((block,), left.place, left.inputs, keys, reduced)
        return piece.also_reading(right.inputs)


def _match(dropped: PlacedRows, by: PlacedRows, kind: str) -> None:
    """Notes that rows of one side matter only if their key is among the other side's."""
    if dropped.reading is not None and by.reading is not None:
        dropped.reading.matched = by.reading.stage
        dropped.reading.type = kind


def _joined_blocks(
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
    return SelectBlock(source, kept, operators=(*operators, word))


def _aligned(piece: PlacedRows, sides: list[tuple[Expr, JoinKeyPair]]) -> list[JoinKeyPair] | None:
    """The pairs in the order of the piece's own keys, if those are among them."""
    if piece.keys is None:
        return None
    chosen = []
    for key in piece.keys:
        match = [p for e, p in sides if column_of(e.text) in key.columns and p.type == key.type]
        if not match:
            return None
        chosen.append(match[0])
    return chosen


def _is_hashed_by(piece: PlacedRows, keys: list[tuple[Expr, str]]) -> bool:
    return (
        piece.keys is not None
        and len(piece.keys) == len(keys)
        and all(
            column_of(expr.text) in own.columns and kind == own.type
            for own, (expr, kind) in zip(piece.keys, keys, strict=True)
        )
    )


def compared(lowering: OperatorLowering, node: SetOperation) -> PlacedRows:
    """EXCEPT and INTERSECT: equal rows meet in the same partition."""
    cutter = lowering.cutter
    kinds = cutter.context.types
    needed = [frozenset(columns) for columns in node.inputs]
    pieces = [
        lowering.piece(child, columns)
        for child, columns in zip((node.left, node.right), needed, strict=True)
    ]
    pairs = [
        (Expr(mark(one), kinds[one]), Expr(mark(two), kinds[two]), kind)
        for one, two in zip(*node.inputs, strict=True)
        if (kind := types.hashed((kinds[one], kinds[two]))) is not None
    ]
    if pairs and all(piece.place != "one" for piece in pieces):
        left = cutter.hashed(pieces[0], needed[0], [(one, kind) for one, _, kind in pairs])
        right = cutter.hashed(pieces[1], needed[1], [(two, kind) for _, two, kind in pairs])
        keys = None
    else:
        for piece in pieces:
            lowering.needs_all_rows(piece, "rows cannot be compared partition by partition")
        left, right = (cutter.gathered(p, n) for p, n in zip(pieces, needed, strict=True))
        keys = None
    new = {column: cutter.names.new() for column in node.columns}
    selects = [
        piece.block.select(
            [(piece.block.columns[c], n) for c, n in zip(columns, new.values(), strict=True)]
        )
        for piece, columns in zip((left, right), node.inputs, strict=True)
    ]
    source = f"(({selects[0]}) {node.operation} ({selects[1]}))"
    operators = (*left.block.operators, *right.block.operators, node.operation.lower())
    block = SelectBlock(source, new, operators=tuple(dict.fromkeys(operators)))
    piece = PlacedRows((block,), left.place, left.inputs, keys, left.reduced and right.reduced)
    return replace(piece.also_reading(right.inputs))
