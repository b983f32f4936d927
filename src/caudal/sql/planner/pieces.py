"""A part of a query together with where its rows are: the state of cutting a query into stages."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from caudal.sql.planner.algebra import Context, Expr, Node, column_of
from caudal.sql.planner.blocks import Block, Names
from caudal.sql.planner.plan import PartitionKind
from caudal.sql.planner.registry import Place, Reading, Registry, StageCut

Needed = frozenset[int]
Wanted = tuple[tuple[int, str], ...]  # columns and types by which a reader would like rows hashed


@dataclass(frozen=True)
class PartitionKey:
    """What a relation is hashed by: columns that hold the key's value, and the hashed type."""

    columns: frozenset[int]
    type: str


@dataclass(frozen=True)
class PlanPiece:
    """Rows by batch (scan: one block per table of a union), by partition (fold), or together (one).

    `keys` is what a fold's rows are hashed by; None if they lie anywhere.
    """

    blocks: tuple[Block, ...]
    place: Place
    inputs: tuple[str, ...] = ()
    keys: tuple[PartitionKey, ...] | None = None
    reduced: bool = False  # fewer rows than the tables have: they may be gathered
    reading: Reading | None = None  # the one stage that is read, if its rows can be told apart

    @property
    def block(self) -> Block:
        (only,) = self.blocks
        return only

    def each(self, change: Callable[[Block], Block]) -> "PlanPiece":
        return replace(self, blocks=tuple(change(block) for block in self.blocks))

    def also_reading(self, stages: Iterable[str]) -> "PlanPiece":
        inputs = tuple(dict.fromkeys((*self.inputs, *stages)))
        return replace(self, inputs=inputs, reading=None)


@dataclass
class PlanCutter:
    """Closes stages and opens the next."""

    registry: Registry
    context: Context
    query: str
    names: Names

    @staticmethod
    def is_scan(stage: str) -> bool:
        return stage.startswith("scan")

    def gathered(self, piece: PlanPiece, needed: Needed) -> PlanPiece:
        """The rows in one place."""
        if piece.place == "one":
            return piece
        return self._next(piece, needed, "gather", ())

    def spread(self, piece: PlanPiece, needed: Needed) -> PlanPiece:
        """A scan's rows over the partitions, so that a fold may see them."""
        return self._next(piece, needed, "spread", ()) if piece.place == "scan" else piece

    def hashed(
        self, piece: PlanPiece, needed: Needed, keys: Sequence[tuple[Expr, str]]
    ) -> PlanPiece:
        """The rows with equal keys in the same partition; a key is an expression and its type."""
        new = self._next(piece, needed, "hash", keys)
        known = tuple(PartitionKey(_alone(expr), kind) for expr, kind in keys)
        return replace(new, keys=known)

    def stage(self, piece: PlanPiece, needed: Needed) -> tuple[str, dict[int, str]]:
        """A stage with all the rows in one slice, for every partition of a fold to read."""
        if len(piece.blocks) > 1:
            piece = self.gathered(piece, needed)
        cut = StageCut(self.query, "gather")
        stage = self.registry.close(piece.block, piece.place, piece.inputs, cut, needed)
        self.registry.readings.append(Reading(stage[0], self.query))
        return stage

    def _next(
        self,
        piece: PlanPiece,
        needed: Needed,
        kind: PartitionKind,
        keys: Sequence[tuple[Expr, str]],
    ) -> PlanPiece:
        closed = []
        for block in piece.blocks:
            texts = tuple(_cast(block.text(expr), expr.type, to) for expr, to in keys)
            cut = StageCut(self.query, kind, texts)
            closed.append(self.registry.close(block, piece.place, piece.inputs, cut, needed))
        place: Place = "one" if kind == "gather" else "fold"
        stages = tuple(dict.fromkeys(stage for stage, _ in closed))
        readings = [Reading(stage, self.query) for stage, _ in closed]
        self.registry.readings.extend(readings)
        only = readings[0] if len(readings) == 1 and kind == "hash" else None
        return PlanPiece((self._reader(closed),), place, stages, None, piece.reduced, only)

    def _reader(self, closed: Sequence[tuple[str, dict[int, str]]]) -> Block:
        if len(closed) == 1:
            stage, columns = closed[0]
            return Block(stage, columns)
        new = {column: self.names.new() for column in closed[0][1]}
        selects = [
            "SELECT "
            + (", ".join(f"{columns[c]} AS {new[c]}" for c in new) or "1 AS one")
            + f" FROM {stage}"
            for stage, columns in closed
        ]
        return Block(f"({' UNION ALL '.join(selects)})", new, operators=("union",))


class Lowers(Protocol):
    """What the parts of the lowering ask of each other."""

    cutter: PlanCutter

    def piece(self, node: Node, needed: Needed, wanted: Wanted = ()) -> PlanPiece: ...

    def needs_all_rows(self, piece: PlanPiece, reason: str) -> None: ...

    def prepared(
        self, piece: PlanPiece, needed: Needed, *exprs: Expr
    ) -> tuple[PlanPiece, tuple[Expr, ...]]: ...


def _alone(expr: Expr) -> frozenset[int]:
    column = column_of(expr.text)
    return frozenset() if column is None else frozenset({column})


def _cast(text: str, kind: str | None, to: str) -> str:
    return text if kind == to else f"CAST({text} AS {to})"
