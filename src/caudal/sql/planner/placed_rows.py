"""A part of a query together with where its rows are: the state of cutting a query into stages."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from caudal.sql.planner.algebra import Context, Expr, Node, column_of
from caudal.sql.planner.plan import PartitionKind
from caudal.sql.planner.select_block import ColumnNames, SelectBlock
from caudal.sql.planner.stage_registry import Place, StageCut, StageRead, StageRegistry

Needed = frozenset[int]
Wanted = tuple[tuple[int, str], ...]  # columns and types by which a reader would like rows hashed


@dataclass(frozen=True)
class PartitionKey:
    """What a relation is hashed by: columns that hold the key's value, and the hashed type."""

    columns: frozenset[int]
    type: str


@dataclass(frozen=True)
class PlacedRows:
    """Rows by batch (scan: one block per table of a union), by partition (fold), or together (one).

    `keys` is what a fold's rows are hashed by; None if they lie anywhere.
    """

    blocks: tuple[SelectBlock, ...]
    place: Place
    inputs: tuple[str, ...] = ()
    keys: tuple[PartitionKey, ...] | None = None
    reduced: bool = False  # fewer rows than the tables have: they may be gathered
    read: StageRead | None = None  # the one stage that is read, if its rows can be told apart

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
    """Closes stages and opens the next."""

    registry: StageRegistry
    context: Context
    query: str
    names: ColumnNames

    @staticmethod
    def is_scan(stage: str) -> bool:
        return stage.startswith("scan")

    def gathered(self, rows: PlacedRows, needed: Needed) -> PlacedRows:
        """The rows in one place."""
        if rows.place == "one":
            return rows
        return self._next(rows, needed, "gather", ())

    def spread(self, rows: PlacedRows, needed: Needed) -> PlacedRows:
        """A scan's rows over the partitions, so that a fold may see them."""
        return self._next(rows, needed, "spread", ()) if rows.place == "scan" else rows

    def hashed(
        self, rows: PlacedRows, needed: Needed, keys: Sequence[tuple[Expr, str]]
    ) -> PlacedRows:
        """The rows with equal keys in the same partition; a key is an expression and its type."""
        new = self._next(rows, needed, "hash", keys)
        known = tuple(PartitionKey(_alone(expr), kind) for expr, kind in keys)
        return replace(new, keys=known)

    def stage(self, rows: PlacedRows, needed: Needed) -> tuple[str, dict[int, str]]:
        """A stage with all the rows in one slice, for every partition of a fold to read."""
        if len(rows.blocks) > 1:
            rows = self.gathered(rows, needed)
        cut = StageCut(self.query, "gather")
        stage = self.registry.close(rows.block, rows.place, rows.inputs, cut, needed)
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
            texts = tuple(_cast(block.text(expr), expr.type, to) for expr, to in keys)
            cut = StageCut(self.query, kind, texts)
            closed.append(self.registry.close(block, rows.place, rows.inputs, cut, needed))
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
    """What the parts of the lowering ask of each other."""

    cutter: StageCutter

    def lower(self, node: Node, needed: Needed, wanted: Wanted = ()) -> PlacedRows: ...

    def needs_all_rows(self, rows: PlacedRows, reason: str) -> None: ...

    def prepared(
        self, rows: PlacedRows, needed: Needed, *exprs: Expr
    ) -> tuple[PlacedRows, tuple[Expr, ...]]: ...


def _alone(expr: Expr) -> frozenset[int]:
    column = column_of(expr.text)
    return frozenset() if column is None else frozenset({column})


def _cast(text: str, kind: str | None, to: str) -> str:
    return text if kind == to else f"CAST({text} AS {to})"
