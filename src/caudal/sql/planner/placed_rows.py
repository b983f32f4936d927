"""Rows during lowering: the SELECT that gives them, and where they are.

The places are `scan` (with their batch), `fold` (in partitions) and `one` (all together).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from caudal.sql.planner.algebra import Context, Expr, Node, column_of
from caudal.sql.planner.plan import PartitionKind
from caudal.sql.planner.select_block import ColumnNames, SelectBlock
from caudal.sql.planner.stage_registry import Place, StageCut, StageRead, StageRegistry

Needed = frozenset[int]
Wanted = tuple[tuple[int, str], ...]  # keys by which a reader would like rows hashed, with types


@dataclass(frozen=True)
class PartitionKey:
    """A key by which rows are hashed: all columns that hold its value, and the hashed type."""

    columns: frozenset[int]
    type: str


@dataclass(frozen=True)
class PlacedRows:
    """Rows and their place. A union of scans has one block per branch; all others have one block.

    `keys` are the keys by which the rows of a fold are hashed; None if they are not hashed.
    """

    blocks: tuple[SelectBlock, ...]
    place: Place
    inputs: tuple[str, ...] = ()
    keys: tuple[PartitionKey, ...] | None = None
    reduced: bool = False  # fewer rows than the tables have, so they may be gathered
    read: StageRead | None = None  # the read of the stage, while a hint for it is possible

    @property
    def block(self) -> SelectBlock:
        (only,) = self.blocks
        return only

    def each(self, change: Callable[[SelectBlock], SelectBlock]) -> "PlacedRows":
        return replace(self, blocks=tuple(change(block) for block in self.blocks))

    def also_reading(self, stages: Iterable[str]) -> "PlacedRows":
        inputs = tuple(dict.fromkeys((*self.inputs, *stages)))
        return replace(self, inputs=inputs, read=None)


@dataclass
class StageCutter:
    """Ends stages and begins the next ones."""

    registry: StageRegistry
    context: Context
    query: str
    names: ColumnNames

    @staticmethod
    def is_scan(stage: str) -> bool:
        return stage.startswith("scan")

    def gather(self, rows: PlacedRows, needed: Needed) -> PlacedRows:
        """Return the rows in one place."""
        if rows.place == "one":
            return rows
        return self._next(rows, needed, "gather", ())

    def settle(self, rows: PlacedRows, needed: Needed) -> PlacedRows:
        """Return rows in one place, of which all these columns were computed before."""
        return self._next(rows, needed, "gather", ())

    def spread(self, rows: PlacedRows, needed: Needed) -> PlacedRows:
        """Return the rows of a scan in partitions, by batch, so that a fold can read them."""
        return self._next(rows, needed, "spread", ()) if rows.place == "scan" else rows

    def hash(
        self, rows: PlacedRows, needed: Needed, keys: Sequence[tuple[Expr, str]]
    ) -> PlacedRows:
        """Return the rows with equal keys in one partition. A key is an expression and its type."""
        new = self._next(rows, needed, "hash", keys)
        known = tuple(PartitionKey(_alone(expr), kind) for expr, kind in keys)
        return replace(new, keys=known)

    def close_whole(self, rows: PlacedRows, needed: Needed) -> tuple[str, dict[int, str]]:
        """Return a stage with all rows in one slice, which every partition of a fold reads."""
        if len(rows.blocks) > 1:
            rows = self.gather(rows, needed)
        cut = StageCut(self.query, "gather")
        kinds = self.context.types
        stage = self.registry.close(rows.block, rows.place, rows.inputs, cut, needed, kinds)
        self.registry.reads.append(StageRead(stage[0], self.query))
        return stage

    def _next(
        self,
        rows: PlacedRows,
        needed: Needed,
        kind: PartitionKind,
        keys: Sequence[tuple[Expr, str]],
    ) -> PlacedRows:
        closed = []
        for block in rows.blocks:
            uncast = tuple((block.text(expr), expr.type) for expr, _ in keys)
            texts = tuple(_cast(*one, to) for one, (_, to) in zip(uncast, keys, strict=True))
            cut = StageCut(self.query, kind, texts, uncast)
            kinds = self.context.types
            closed.append(self.registry.close(block, rows.place, rows.inputs, cut, needed, kinds))
        place: Place = "one" if kind == "gather" else "fold"
        stages = tuple(dict.fromkeys(stage for stage, _ in closed))
        reads = [StageRead(stage, self.query) for stage, _ in closed]
        self.registry.reads.extend(reads)
        only = reads[0] if len(reads) == 1 and kind == "hash" else None
        return PlacedRows((self._reader(closed),), place, stages, None, rows.reduced, only)

    def _reader(self, closed: Sequence[tuple[str, dict[int, str]]]) -> SelectBlock:
        if len(closed) == 1:
            stage, columns = closed[0]
            return SelectBlock(stage, columns)
        new = {column: self.names.new() for column in closed[0][1]}
        selects = [
            "SELECT "
            + (", ".join(f"{columns[c]} AS {new[c]}" for c in new) or "1 AS one")
            + f" FROM {stage}"
            for stage, columns in closed
        ]
        return SelectBlock(f"({' UNION ALL '.join(selects)})", new, operators=("union",))


class OperatorLowering(Protocol):
    """What the lowering of joins and aggregates uses of `lower.Lowering`."""

    cutter: StageCutter

    def lower(self, node: Node, needed: Needed, wanted: Wanted = ()) -> PlacedRows: ...

    def needs_all_rows(self, rows: PlacedRows, reason: str) -> None: ...

    def bind_subqueries(
        self, rows: PlacedRows, needed: Needed, *exprs: Expr
    ) -> tuple[PlacedRows, tuple[Expr, ...]]: ...


def _alone(expr: Expr) -> frozenset[int]:
    column = column_of(expr.text)
    return frozenset() if column is None else frozenset({column})


def _cast(text: str, kind: str | None, to: str) -> str:
    return text if kind == to else f"CAST({text} AS {to})"
