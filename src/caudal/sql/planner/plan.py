"""A plan: stages of plain SQL that read each other's output. Data only; it is stored as JSON.

Theory of operation
1. A scan runs once per batch of its table. It reads one relation with the name of the table, and
   nothing else. So it may run while later batches are still being sent.
2. A fold runs once per partition, or once if `partitions` is `one`. It reads relations with the
   names of its input stages: slice p of every hashed or spread input in partition p, and all rows
   of every gathered input.
3. A finish runs once per query and makes its answer.
4. The rows of an input are concatenated in the order of (batch, row) for a scan and of (partition,
   row) for a fold, in whatever order they were computed.
5. Every stage says how its output is partitioned. The columns in `hidden` are computed only to be
   hashed; they are not part of the output.
"""

from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

from caudal.decoding import decode_json

FORMAT = 1  # of this module's JSON

TableSchema = Mapping[str, str]  # column -> DuckDB's name of its type, in order

PartitionKind = Literal["hash", "spread", "gather"]
Strategy = Literal["scaled", "gathered", "whole tables"]


class Partition(msgspec.Struct, frozen=True):
    """How a stage's output is cut into slices.

    hash: by the hash of `keys`. spread: a scan by batch, a fold as it is. gather: not at all.
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
    """The last stage of a query. `inputs` maps each relation that the SQL reads to a stage."""

    query: str
    inputs: dict[str, str]
    sql: str
    operators: tuple[str, ...]
    strategy: Strategy
    reason: str = ""  # why it is not scaled
    grows: tuple[int, ...] = ()  # places of columns that can be shown early (`growing.py`)


class Hint(msgspec.Struct, frozen=True):
    """How a scan may leave out rows that no later stage keeps, once other stages are complete.

    `sql` replaces the SQL of the scan. Besides the table it reads the relation `caudal_hint`, which
    has one column `key` of `type` with the values of all `sources` (stage, column). It leaves out
    the rows whose `key`, an expression over the table, is not among them.
    """

    scan: str
    sources: tuple[tuple[str, str], ...]
    type: str
    sql: str
    key: str = ""


class Plan(msgspec.Struct, frozen=True):
    """Scans, folds (each after its inputs), and one finish per query."""

    tables: dict[str, dict[str, str]]
    scans: tuple[Scan, ...]
    folds: tuple[Fold, ...]
    finishes: tuple[Finish, ...]
    hints: tuple[Hint, ...] = ()
    format: int = FORMAT

    def finish(self, query: str) -> Finish:
        return next(finish for finish in self.finishes if finish.query == query)

    def usable_hints(self, complete: Collection[str]) -> dict[str, Hint]:
        """Return the hints whose sources are all complete, by scan."""
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
    return decode_json(data, Plan)
