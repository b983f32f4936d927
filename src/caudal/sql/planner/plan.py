"""What a plan is: stages of plain SQL, joined by named relations. Data only; it travels as JSON.

Theory of operation
1. A scan runs once per batch of its table, over one relation named like the table, and sees
   nothing else. So it may run while later batches are still on their way.
2. A fold runs once per partition (or once in all, if `partitions` is `one`), over relations named
   like its input stages. Partition p sees slice p of every hashed or spread input, and the whole of
   every gathered one.
3. A finish runs once per query and makes its answer.
4. The rows of an input are concatenated by (batch, row) of a scan and by (partition, row) of a
   fold, whatever the order in which they were computed.
5. Every stage names its output's partitioning; the columns in `hidden` exist only to be hashed and
   do not travel.
"""

from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

FORMAT = 1  # of this module's JSON

TableSchema = Mapping[str, str]  # column -> DuckDB's name of its type, in order

PartitionKind = Literal["hash", "spread", "gather"]
Strategy = Literal["scaled", "gathered", "whole tables"]


class Partition(msgspec.Struct, frozen=True):
    """How a stage's output is cut into slices.

    hash: by the hash of `keys`; spread: by batch (scan) or as it lies (fold); gather: not at all.
    """

    kind: PartitionKind
    keys: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


class Scan(msgspec.Struct, frozen=True):
    name: str
    table: str
    sql: str
    partition: Partition
    operators: tuple[str, ...]
    queries: tuple[str, ...]


class Fold(msgspec.Struct, frozen=True):
    name: str
    inputs: tuple[str, ...]
    sql: str
    partition: Partition
    partitions: Literal["all", "one"]
    operators: tuple[str, ...]
    queries: tuple[str, ...]


class Finish(msgspec.Struct, frozen=True):
    """`inputs` maps the relation that the SQL reads to the stage that fills it."""

    query: str
    inputs: dict[str, str]
    sql: str
    operators: tuple[str, ...]
    strategy: Strategy
    reason: str = ""  # why it is not scaled


class Hint(msgspec.Struct, frozen=True):
    """Rows of a scan that no reader can keep, once other stages are complete.

    `sql` is the scan's fragment that reads, besides its table, the relation `caudal_hint`: one
    column `key` of `type`, holding the values of `sources` (stage, column) together. The rows that
    it leaves out change no answer: those whose `key`, an expression over the table, is not there.
    """

    scan: str
    sources: tuple[tuple[str, str], ...]
    type: str
    sql: str
    key: str = ""


class Plan(msgspec.Struct, frozen=True):
    """Scans, folds in an order in which each finds its inputs, one finish per query."""

    tables: dict[str, dict[str, str]]
    scans: tuple[Scan, ...]
    folds: tuple[Fold, ...]
    finishes: tuple[Finish, ...]
    hints: tuple[Hint, ...] = ()
    format: int = FORMAT

    def finish(self, query: str) -> Finish:
        return next(finish for finish in self.finishes if finish.query == query)

    def usable_hints(self, complete: Collection[str]) -> dict[str, Hint]:
        """By scan: the hints whose sources are all among the complete stages."""
        return {
            hint.scan: hint
            for hint in self.hints
            if hint.scan not in complete and all(stage in complete for stage, _ in hint.sources)
        }

    def stage(self, name: str) -> Scan | Fold:
        return next(stage for stage in self.stages() if stage.name == name)

    def stages(self) -> tuple[Scan | Fold, ...]:
        return (*self.scans, *self.folds)


def to_json(plan: Plan) -> bytes:
    return msgspec.json.encode(plan)


def from_json(data: bytes) -> Plan:
    return msgspec.json.decode(data, type=Plan)
