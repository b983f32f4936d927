"""The steps of a plan as functions from bytes to bytes: what a task of a cluster computes.

Rules
1. The same plan and the same inputs give the same rows in the same order, on any machine.
2. Inputs come as Arrow streams in the order that the plan states: by batch, or by partition.
3. A stage whose table has no batch at all still has a schema: its fragment runs over no rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from caudal.duck import stages
from caudal.duck.clean import clean_piece
from caudal.duck.containment import is_of_memory
from caudal.duck.prefilter import KeyFilters
from caudal.duck.sandbox import Sandbox
from caudal.errors import (
    ApplicationError,
    DataError,
    FormatError,
    InterruptedQueryError,
    QueryError,
)
from caudal.files.cleaning import Cleaning
from caudal.files.pieces import Cleaned, FilePiece, TextRows, Wanted, require_columns, typed_reader
from caudal.formats import batch, mapped, outputs, streams
from caudal.jobs.plan import JobPlan, TableMap, prefilter_keys
from caudal.kernels import csv
from caudal.kernels.hashing import KeyFilter, key_words
from caudal.results.failures import Failures
from caudal.sql.planner import Scan

Streams = Mapping[str, Sequence[bytes]]  # stage -> Arrow streams


@dataclass(frozen=True)
class TableWork:
    """How the batches of a table are mapped with the hints that there are."""

    cleaning: Cleaning
    works: tuple[stages.Work, ...]
    filters: KeyFilters


def table_work(one: TableMap, works: Sequence[stages.Work]) -> TableWork:
    """The table's scans with their hints; if all have one, rows are sifted by them."""
    if one.prefiltered is None or not all(work.beside for work in works):
        return TableWork(one.cleaning, tuple(works), {})
    filters = {
        prefilter_keys(work.stage.name): KeyFilter(
            key_words(work.beside[stages.HINT].column("key"))
        )
        for work in works
    }
    return TableWork(one.prefiltered, tuple(works), filters)


def map_piece(
    work: TableWork,
    number: int,
    piece: FilePiece,
    hashing: stages.Hashing,
    sandbox: Sandbox,
    *,
    split: JobPlan,
    source: batch.BatchHeader | None = None,
    failures: Failures | None = None,
    alone: bool = False,
) -> tuple[bytes, Cleaned]:
    """One batch to one mapped object.

    With `failures` a scan that fails is noted there and left out, and one that nobody waits for is
    not run. Without, the object says why it failed, if that is its own doing; `alone`: nothing else
    runs in this process.
    """
    table = work.cleaning.table
    failed: dict[str, str] = {}

    def select(sql: str, relation: str, rows: pa.Table) -> pa.Table:
        try:
            return sandbox.select(sql, {relation: rows})
        except QueryError as error:
            raise ApplicationError(f"{table.origin}: {error}") from None

    def scanned(one: stages.Work) -> stages.Slices:
        with split.naming(one.stage.queries):
            return stages.scan(one.stage, cleaned.rows, number, hashing, sandbox, one.beside)

    def all_scanned() -> Iterator[tuple[str, stages.Slices]]:
        for one in work.works:
            name, queries = one.stage.name, one.stage.queries
            if failures is None:
                try:
                    yield name, scanned(one)
                except QueryError as error:
                    if not _is_its_own(error, alone=alone):
                        raise
                    failed[name] = str(error)
            elif name not in failures.steps and not failures.concern_all(queries):
                with failures.of(queries, name):
                    yield name, scanned(one)

    cleaned = clean_piece(piece, work.cleaning, select, work.filters)
    slices = dict(all_scanned())
    data = mapped.encode(
        table=table.name,
        batch=number,
        file=piece.file,
        rows=cleaned.accepted,
        repaired=cleaned.repaired,
        rejects=cleaned.rejected.kept(),
        stages=slices,
        source_bytes=source.bytes if source else 0,
        source_digest=source.digest if source else "",
        failed=failed,
    )
    return data, cleaned


def _is_its_own(error: QueryError, *, alone: bool) -> bool:
    """Whether a query would meet this error everywhere and every time. For want of memory others
    may be to blame, unless the query ran alone in its process."""
    if isinstance(error, InterruptedQueryError):
        return False
    return alone or not is_of_memory(error)


def map_records(
    split: JobPlan,
    index: batch.BatchHeader,
    records: bytes | memoryview,
    hashing: stages.Hashing,
    sandbox: Sandbox,
    work: TableWork,
    *,
    alone: bool = False,
) -> bytes:
    """The records of a stored batch to a mapped object."""
    wanted = work.cleaning.wanted
    require_columns(index.columns, wanted.columns, index.file, index.table)
    piece = stored_piece(index, records, wanted)
    return map_piece(
        work, index.number, piece, hashing, sandbox, split=split, source=index, alone=alone
    )[0]


def stored_piece(
    index: batch.BatchHeader, records: bytes | memoryview, wanted: Wanted
) -> FilePiece:
    """A stored batch as a piece of the file that it was cut from."""
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
    )

    def read() -> TextRows:
        found = csv.read_batch(cut, wanted.texts, wanted.numbers, wanted.later)
        return TextRows(
            cut.file,
            found.table,
            lambda rows: cut.lines(found.starts[rows]),
            found.damaged,
            found.repaired,
            found.numbers,
            found.later,
        )

    return FilePiece(index.file, len(records), index.offset + len(records), read)


def _typed_rows(index: batch.BatchHeader, records: bytes | memoryview, wanted: Wanted) -> pa.Table:
    """The wanted columns of a stream that a client sent. The batch's digest matched, so whatever
    is wrong with the stream was sent so: the data's fault, everywhere and every time."""
    try:
        rows = streams.read_rows(records, f"batch {index.number} of {index.table}", streams.CLIENTS)
    except FormatError as error:
        raise DataError(f"{index.file}: {error}") from error
    require_columns(rows.column_names, wanted.columns, index.file, index.table)
    return rows.select(list(wanted.columns))


def fold_partition(
    split: JobPlan,
    name: str,
    partition: int,
    streams: Streams,
    hashing: stages.Hashing,
    sandbox: Sandbox,
) -> bytes:
    """One partition of one fold, from its slices."""
    step = next(fold for fold in split.plan.folds if fold.name == name)
    inputs = {one: _table(split, one, streams[one], hashing, sandbox) for one in step.inputs}
    with split.naming(step.queries):
        slices = stages.fold(step, partition, inputs, hashing, sandbox)
    return outputs.encode_fold(name, partition, slices)


def finish_query(
    split: JobPlan,
    streams: Streams,
    hashing: stages.Hashing,
    sandboxes: tuple[Sandbox, Sandbox],
    whose: outputs.Whose,
) -> bytes:
    """The answer of one query; `sandboxes` are one for stages and one for results."""
    name = whose.query
    step, query = split.plan.finish(name), split.query(name)
    inputs = {
        one: _table(split, one, streams[one], hashing, sandboxes[0]) for one in step.inputs.values()
    }
    with split.naming([name]):
        rows = stages.finish(step, inputs, sandboxes[1])
    named = rows.rename_columns(list(split.names[name]))
    return outputs.encode_result(whose, query.title, named)


def _table(
    split: JobPlan,
    stage: str,
    streams: Sequence[bytes],
    hashing: stages.Hashing,
    sandbox: Sandbox,
) -> pa.Table:
    if streams:
        return pa.concat_tables(mapped.read_rows(one) for one in streams)
    scan = split.plan.stage(stage)
    assert isinstance(scan, Scan), f"fold {stage} has no output"
    nothing = stages.empty_table(split.plan.tables[scan.table], sandbox)
    return stages.scan(scan, nothing, 0, hashing, sandbox)[0].slice(0, 0)
