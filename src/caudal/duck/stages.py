"""Executes a plan's fragments over Arrow tables, and whole plans in this process.

Rules
1. `scan`, `fold` and `finish` are functions of their arguments alone: the same plan and the same
   rows give the same bytes, on any machine, however often they run.
2. The inputs of a fold or a finish are concatenated in the order that the plan states, never in
   the order in which they were computed.
3. A stage without any input rows still has a schema: its fragment runs over an empty relation.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from caudal.duck.sandbox import Sandbox
from caudal.sql.planner import Finish, Fold, Hint, Partition, Plan, Scan

HINT = "caudal_hint"  # the relation that a hinted scan reads beside its table

PartitionOf = Callable[[Sequence[pa.ChunkedArray], int], npt.NDArray[np.int32]]
Slices = list[pa.Table]  # one per partition; a gathered output is one slice


@dataclass(frozen=True)
class Hashing:
    """How rows find their partition."""

    partitions: int
    partition_of: PartitionOf


def scan(
    stage: Scan,
    rows: pa.Table,
    number: int,
    hashing: Hashing,
    sandbox: Sandbox,
    beside: Mapping[str, pa.Table] | None = None,
) -> Slices:
    """One batch through one scan; `number` is the batch's place in its table.

    With a hint, `stage` carries the hint's SQL and `beside` the relation `caudal_hint`.
    """
    output = sandbox.select(stage.sql, {stage.table: rows, **(beside or {})})
    return _cut(output, stage.partition, number % hashing.partitions, hashing)


def hint_keys(hint: Hint, stages: Mapping[str, pa.Table], sandbox: Sandbox) -> pa.Table:
    """The keys that rows of the hinted scan must meet, from the complete stages it names."""
    selects = [
        f'SELECT CAST("{column}" AS {hint.type}) AS key FROM {stage}'
        for stage, column in hint.sources
    ]
    return sandbox.select(" UNION ".join(selects), dict(stages))


def fold(
    stage: Fold, partition: int, inputs: Mapping[str, pa.Table], hashing: Hashing, sandbox: Sandbox
) -> Slices:
    """One partition through one fold."""
    return _cut(sandbox.select(stage.sql, inputs), stage.partition, partition, hashing)


def finish(stage: Finish, inputs: Mapping[str, pa.Table], sandbox: Sandbox) -> pa.Table:
    """The answer of a query; `inputs` are named by stage."""
    relations = {relation: inputs[name] for relation, name in stage.inputs.items()}
    return sandbox.select(stage.sql, relations)


def _cut(output: pa.Table, partition: Partition, here: int, hashing: Hashing) -> Slices:
    if partition.kind == "gather":
        return [output]
    if partition.kind == "spread":
        empty = output.slice(0, 0)
        return [output if number == here else empty for number in range(hashing.partitions)]
    keys = [output.column(name) for name in partition.keys]
    placed = hashing.partition_of(keys, hashing.partitions)
    rows = output.drop_columns(list(partition.hidden)) if partition.hidden else output
    return [
        rows.take(pa.array(np.flatnonzero(placed == number)))
        for number in range(hashing.partitions)
    ]


@dataclass
class _Outputs:
    """The slices of every stage so far: stage -> pieces in the order of the plan."""

    pieces: dict[str, list[Slices]] = field(default_factory=dict)

    def slice(self, stage: str, number: int) -> pa.Table:
        """Slice `number` of a cut output; the whole of a gathered one."""
        parts = self.pieces[stage]
        return pa.concat_tables(piece[min(number, len(piece) - 1)] for piece in parts)

    def whole(self, stage: str) -> pa.Table:
        return pa.concat_tables(part for piece in self.pieces[stage] for part in piece)


@dataclass(frozen=True)
class Work:
    """A scan and what it reads beside its table."""

    stage: Scan
    beside: Mapping[str, pa.Table]


def with_hint(
    stage: Scan, hint: Hint | None, whole: Callable[[str], pa.Table], sandbox: Sandbox
) -> Work:
    """A scan that drops what no reader can keep, if a hint says so; `whole` gives the rows of the
    complete stages that the hint names."""
    if hint is None:
        return Work(stage, {})
    keys = hint_keys(hint, {name: whole(name) for name, _ in hint.sources}, sandbox)
    return Work(msgspec.structs.replace(stage, sql=hint.sql), {HINT: keys})


@dataclass(frozen=True)
class Run:
    """A plan, executed in this process: `sandbox` for stages, `results` for the answers."""

    plan: Plan
    hashing: Hashing
    sandbox: Sandbox
    results: Sandbox
    hinted: bool = False  # drop rows early, where tables that came before allow it

    def answers(
        self,
        tables: Mapping[str, Sequence[pa.Table]],
        order: Callable[[Sequence[int]], Iterable[int]] = iter,
    ) -> dict[str, pa.Table]:
        """Every query's rows. `order` permutes the work of each stage; answers stay the same."""
        outputs = _Outputs()
        for table in dict.fromkeys(stage.table for stage in self.plan.scans):
            hints = self.plan.usable_hints(outputs.pieces) if self.hinted else {}
            for stage in (stage for stage in self.plan.scans if stage.table == table):
                hint = hints.get(stage.name)
                chosen = with_hint(stage, hint, outputs.whole, self.sandbox)
                outputs.pieces[stage.name] = self._scanned(chosen, tables[table], order)
        for step in self.plan.folds:
            outputs.pieces[step.name] = self._folded(step, outputs, order)
        return {last.query: self._finished(last, outputs) for last in self.plan.finishes}

    def _scanned(
        self,
        work: Work,
        batches: Sequence[pa.Table],
        order: Callable[[Sequence[int]], Iterable[int]],
    ) -> list[Slices]:
        if not batches:
            empty = empty_table(self.plan.tables[work.stage.table], self.sandbox)
            nothing = scan(work.stage, empty, 0, self.hashing, self.sandbox, work.beside)
            return [[part.slice(0, 0) for part in nothing]]
        done = {
            number: scan(
                work.stage, batches[number], number, self.hashing, self.sandbox, work.beside
            )
            for number in order(range(len(batches)))
        }
        return [done[number] for number in range(len(batches))]

    def _folded(
        self, step: Fold, outputs: _Outputs, order: Callable[[Sequence[int]], Iterable[int]]
    ) -> list[Slices]:
        count = self.hashing.partitions if step.partitions == "all" else 1
        done = {
            number: fold(
                step,
                number,
                {
                    name: outputs.slice(name, number) if count > 1 else outputs.whole(name)
                    for name in step.inputs
                },
                self.hashing,
                self.sandbox,
            )
            for number in order(range(count))
        }
        return [done[number] for number in range(count)]

    def _finished(self, last: Finish, outputs: _Outputs) -> pa.Table:
        inputs = {name: outputs.whole(name) for name in last.inputs.values()}
        return finish(last, inputs, self.results)


def empty_table(schema: Mapping[str, str], sandbox: Sandbox) -> pa.Table:
    """A table of this schema without rows."""
    columns = ", ".join(
        f'CAST(NULL AS {kind}) AS "{name.replace(chr(34), chr(34) * 2)}"'
        for name, kind in schema.items()
    )
    return sandbox.select(f"SELECT {columns} LIMIT 0", {})
