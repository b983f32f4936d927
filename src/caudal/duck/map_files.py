"""The map of a dataset's files: clean rows of Parquet files through the scans of their table."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from caudal.duck.steps import ScanWork, Slices, StepContext, is_its_own, scan
from caudal.errors import QueryError
from caudal.formats import mapped
from caudal.formats.digest import digest
from caudal.formats.file_groups import group_digest
from caudal.jobs.plan import TableMap

_ROWS_AT_ONCE = 122_880  # a row group of a dataset


def map_files(context: StepContext, one: TableMap, files: Sequence[bytes]) -> bytes:
    """Pass the rows of Parquet files of a dataset through every scan of their table.

    The output depends on nothing but the files and the plan, so any job may use it. Files are read
    a piece at a time, which bounds the memory.
    """
    cleaning, source = one.cleaning, group_digest([digest(data) for data in files])
    works = [ScanWork(stage, {}) for stage in one.scans]
    slices: dict[str, list[Slices]] = {stage.name: [] for stage in one.scans}
    failed: dict[str, str] = {}
    count = 0
    for rows in _pieces_of(files, cleaning.wanted.columns):
        count += rows.num_rows
        whole = context.stages.select(cleaning.sql, {"raw": rows})
        for work in works:
            if work.stage.name not in failed:
                try:
                    cut = _scanned(context, work, whole, int(source[:8], 16))
                    slices[work.stage.name].append(cut)
                except QueryError as error:
                    if not is_its_own(error, alone=context.alone):
                        raise
                    failed[work.stage.name] = str(error)
    return mapped.encode(
        table=one.table.name,
        batch=0,
        file="",
        rows=count,
        repaired=0,
        rejects=mapped.reject_rows(()),
        stages={
            name: [pa.concat_tables(parts) for parts in zip(*pieces, strict=True)]
            for name, pieces in slices.items()
            if name not in failed
        },
        source_bytes=sum(map(len, files)),
        source_digest=source,
        failed=failed,
    )


def _scanned(context: StepContext, work: ScanWork, rows: pa.Table, number: int) -> Slices:
    with context.split.naming(work.stage.queries):
        return scan(work, rows, number, context.hashing, context.stages)


def _pieces_of(files: Sequence[bytes], columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield rows of Parquet files, some at a time; of no rows at least once, for the schema."""
    import pyarrow.parquet as pq

    is_any = False
    for data in files:
        file = pq.ParquetFile(pa.BufferReader(data))
        for rows in file.iter_batches(_ROWS_AT_ONCE, columns=list(columns)):
            is_any = True
            yield pa.Table.from_batches([rows])
    if not is_any:
        yield file.schema_arrow.empty_table().select(list(columns))
