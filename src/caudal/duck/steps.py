"""The steps of a plan, scan, fold and finish: over rows, and as bytes for a task.

Rules
1. A step depends only on its arguments: the same plan and the same inputs give the same rows in the
   same order, on any machine, each time that it runs.
2. Inputs come in the order of the plan, by batch or by partition, and not in the order in which
   they were computed.
3. A stage whose table has no batch has a schema too: its SQL runs over no rows.
4. A scan that fails by its own fault is left out, and the mapped object holds the reason (ADR 27).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from caudal.duck.clean import clean_piece
from caudal.duck.containment import is_of_memory
from caudal.duck.prefilter import KeyFilters
from caudal.duck.sandbox import Sandbox, SandboxLimits, Types
from caudal.duck.step_inputs import Rows, put_together
from caudal.errors import (
    ApplicationError,
    DataError,
    FormatError,
    InterruptedQueryError,
    QueryError,
)
from caudal.files.cleaning import Cleaning, Wanted
from caudal.files.pieces import (
    Cleaned,
    FilePiece,
    TextRows,
    number_columns,
    require_columns,
    text_rows,
    typed_reader,
)
from caudal.files.typed_texts import DAMAGE
from caudal.formats import batch, mapped, outputs, streams
from caudal.jobs.interfaces import Inputs
from caudal.jobs.plan import JobPlan, TableMap, prefilter_keys
from caudal.kernels import csv
from caudal.kernels.hashing import KeyFilter, key_words
from caudal.sql.planner import Finish, Fold, Hint, Partition, Scan
from caudal.sql.quoting import quote

HINT = "caudal_hint"  # the second relation of a scan with a hint

PartitionOf = Callable[[Sequence[pa.ChunkedArray], int], npt.NDArray[np.int32]]
Slices = list[pa.Table]  # one per partition; a gathered output is one slice


@dataclass(frozen=True)
class Hashing:
    """How the partition of a row is computed."""

    partitions: int
    partition_of: PartitionOf


@dataclass(frozen=True)
class ScanWork:
    """A scan and its other inputs. With a hint, the scan has the SQL of the hint."""

    stage: Scan
    beside: Mapping[str, pa.Table]


@dataclass(frozen=True)
class TableWork:
    """How the batches of a table are mapped with the present hints."""

    cleaning: Cleaning
    works: tuple[ScanWork, ...]
    filters: KeyFilters


@dataclass(frozen=True)
class StepContext:
    """The settings and sandboxes that all steps of a job use."""

    split: JobPlan
    hashing: Hashing
    sandbox: Callable[[Types], Sandbox]
    limits: SandboxLimits  # of the sandboxes
    alone: bool = False  # nothing else runs in this process: a lack of memory is the step's own

    @property
    def stages(self) -> Sandbox:
        """Return the sandbox for rows that another stage reads."""
        return self.sandbox(Types.LOSSLESS)


def scan(work: ScanWork, rows: pa.Table, number: int, hashing: Hashing, sandbox: Sandbox) -> Slices:
    """Pass one batch through one scan; `number` is the batch's place in its table."""
    output = sandbox.select(work.stage.sql, {work.stage.table: rows, **work.beside})
    return _cut(output, work.stage.partition, number % hashing.partitions, hashing)


def fold(
    stage: Fold, partition: int, inputs: Mapping[str, Rows], hashing: Hashing, sandbox: Sandbox
) -> Slices:
    """Pass one partition through one fold."""
    return _cut(sandbox.select(stage.sql, inputs), stage.partition, partition, hashing)


def finish(stage: Finish, inputs: Mapping[str, Rows], sandbox: Sandbox) -> pa.Table:
    """Return the answer of a query; `inputs` are named by stage."""
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


def with_hint(
    stage: Scan, hint: Hint | None, whole: Callable[[str], pa.Table], sandbox: Sandbox
) -> ScanWork:
    """Return a scan that drops rows that no reader keeps, if there is a hint. `whole` returns the
    rows of the complete stages that the hint names."""
    if hint is None:
        return ScanWork(stage, {})
    keys = _hint_keys(hint, {name: whole(name) for name, _ in hint.sources}, sandbox)
    return ScanWork(msgspec.structs.replace(stage, sql=hint.sql), {HINT: keys})


def _hint_keys(hint: Hint, stages: Mapping[str, pa.Table], sandbox: Sandbox) -> pa.Table:
    """Return the keys of a hint, from the stages that it names."""
    selects = [
        f"SELECT CAST({quote(column)} AS {hint.type}) AS key FROM {stage}"
        for stage, column in hint.sources
    ]
    return sandbox.select(" UNION ".join(selects), dict(stages))


def table_work(one: TableMap, works: Sequence[ScanWork]) -> TableWork:
    """Combine a table's scans with their hints; if all have one, rows are prefiltered by them."""
    if one.prefiltered is None or not all(work.beside for work in works):
        return TableWork(one.cleaning, tuple(works), {})
    filters = {
        prefilter_keys(work.stage.name): KeyFilter(key_words(work.beside[HINT].column("key")))
        for work in works
    }
    return TableWork(one.prefiltered, tuple(works), filters)


def clean_batch(
    context: StepContext,
    work: TableWork,
    index: batch.BatchHeader,
    records: bytes | memoryview,
    found: csv.Found | None = None,
) -> Cleaned:
    """Read and clean the records of a stored batch; `found` is an earlier scan of them."""
    wanted, origin = work.cleaning.wanted, work.cleaning.table.origin
    require_columns(index.columns, wanted.columns, index.file, index.table)

    def select(sql: str, relation: str, rows: pa.Table) -> pa.Table:
        try:
            return context.stages.select(sql, {relation: rows})
        except QueryError as error:
            raise ApplicationError(f"{origin}: {error}") from None

    piece = stored_piece(index, records, wanted, found)
    return clean_piece(piece, work.cleaning, select, work.filters)


def map_rows(
    context: StepContext, work: TableWork, index: batch.BatchHeader, cleaned: Cleaned
) -> bytes:
    """Pass the clean rows of one batch through every scan of its table: one mapped object."""
    slices: dict[str, Slices] = {}
    failed: dict[str, str] = {}
    for one in work.works:
        try:
            with context.split.naming(one.stage.queries):
                slices[one.stage.name] = scan(
                    one, cleaned.rows, index.number, context.hashing, context.stages
                )
        except QueryError as error:
            if not is_its_own(error, alone=context.alone):
                raise
            failed[one.stage.name] = str(error)
    return mapped.encode(
        table=index.table,
        batch=index.number,
        file=index.file,
        rows=cleaned.accepted,
        repaired=cleaned.repaired,
        rejects=cleaned.rejected.kept(),
        stages=slices,
        source_bytes=index.bytes,
        source_digest=index.digest,
        failed=failed,
        records=cleaned.rejected.first_records(),
    )


def is_its_own(error: QueryError, *, alone: bool) -> bool:
    """Return whether the query would raise this error everywhere and every time. A lack of memory
    may have other causes, unless the query ran alone in its process."""
    if isinstance(error, InterruptedQueryError):
        return False
    return alone or not is_of_memory(error)


def stored_piece(
    index: batch.BatchHeader,
    records: bytes | memoryview,
    wanted: Wanted,
    found: csv.Found | None = None,
) -> FilePiece:
    """Return a stored batch as a piece of its file."""
    if index.records == "arrow":
        rows = _typed_rows(index, records, wanted)
        reader = typed_reader(index.file, rows, index.first_line, wanted)
        return FilePiece(index.file, len(records), index.offset + rows.num_rows, reader)
    cut = csv.Batch(
        file=index.file,
        header=csv.Header(index.columns),
        number=index.number,
        first_line=index.first_line,
        offset=index.offset,
        newlines=index.newlines,
        data=np.frombuffer(records, dtype=np.uint8),
        found=found,
    )

    def read() -> TextRows:
        found = csv.read_batch(cut, wanted.texts, number_columns(wanted), wanted.later)
        return text_rows(cut, found)

    return FilePiece(index.file, len(records), index.offset + len(records), read)


def _typed_rows(index: batch.BatchHeader, records: bytes | memoryview, wanted: Wanted) -> pa.Table:
    """Return the wanted columns of a stream that a client sent. The digest of the batch matched, so
    a damaged stream was sent that way: it would fail everywhere and every time."""
    try:
        rows = streams.read_rows(records, f"batch {index.number} of {index.table}", streams.CLIENTS)
    except FormatError as error:
        raise DataError(f"{index.file}: {error}") from error
    require_columns(rows.column_names, wanted.columns, index.file, index.table)
    damage = [DAMAGE] if DAMAGE in rows.column_names else []
    if damage and not pa.types.is_integer(rows.schema.field(DAMAGE).type):
        raise DataError(f"{index.file}: its column of damage holds no numbers")
    return rows.select([*wanted.columns, *damage])


def fold_partition(context: StepContext, name: str, partition: int, inputs: Inputs) -> bytes:
    """Compute one partition of one fold, from its slices."""
    step = next(fold for fold in context.split.plan.folds if fold.name == name)
    rows = _all_rows(context, step.inputs, inputs)
    with context.split.naming(step.queries):
        slices = fold(step, partition, rows, context.hashing, context.stages)
    return outputs.encode_fold(name, partition, slices)


def finish_query(context: StepContext, inputs: Inputs, whose: outputs.Whose) -> bytes:
    """Compute the answer of one query."""
    name, split = whose.query, context.split
    step = split.plan.finish(name)
    rows = _all_rows(context, step.inputs.values(), inputs)
    with split.naming([name]):
        answer = finish(step, rows, context.sandbox(Types.PLAIN))
    named = answer.rename_columns(list(split.names.get(name, answer.column_names)))
    return outputs.encode_result(whose, split.query(name).title, named)


def _all_rows(context: StepContext, names: Iterable[str], inputs: Inputs) -> dict[str, Rows]:
    """Return the rows of every input of a step, by stage."""
    stages = list(dict.fromkeys(names))
    return {
        name: put_together(_tables(context, name, inputs), context.limits, len(stages))
        for name in stages
    }


def _tables(context: StepContext, stage: str, inputs: Inputs) -> Iterator[pa.Table]:
    if len(inputs[stage]):
        for part in inputs[stage]:
            yield mapped.read_rows(part.data)
        return
    found = context.split.plan.stage(stage)
    assert isinstance(found, Scan), f"fold {stage} has no output"
    nothing = empty_table(context.split.plan.tables[found.table], context.stages)
    yield scan(ScanWork(found, {}), nothing, 0, context.hashing, context.stages)[0].slice(0, 0)


def empty_table(schema: Mapping[str, str], sandbox: Sandbox) -> pa.Table:
    """Return a table of this schema without rows."""
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in schema.items())
    return sandbox.select(f"SELECT {columns} LIMIT 0", {})
