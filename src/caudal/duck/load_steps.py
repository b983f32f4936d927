"""The map of a load: clean a batch, and write its rows and its rejected rows as Parquet files."""

import msgspec
import pyarrow as pa

from caudal.datasets.parquet import stored_file
from caudal.duck.clean import clean_piece
from caudal.duck.steps import StepContext, stored_piece
from caudal.errors import ApplicationError, QueryError
from caudal.files.cleaning import Cleaning
from caudal.files.pieces import Cleaned, require_columns
from caudal.formats import batch, loaded, mapped
from caudal.formats.loads import LoadedBatch, StoredFile

_Written = tuple[StoredFile | None, bytes]


def load_batch(
    context: StepContext,
    cleaning: Cleaning,
    load: str,
    index: batch.BatchHeader,
    records: bytes | memoryview,
) -> bytes:
    """Return the output of a map of a load (formats/loaded.py)."""
    cleaned, rejects = _clean(context, cleaning, index, records)
    name = f"{index.number:08}"
    rows, row_bytes = _written(f"{load}/{name}.parquet", cleaned.rows)
    rejected, reject_bytes = _written(f"{load}/{index.table}-{name}.parquet", rejects)
    source = 0 if index.source is msgspec.UNSET else index.source
    given = LoadedBatch(source, rows, rejected, rejects.num_rows)
    made = mapped.encode(
        table=index.table,
        batch=index.number,
        file=index.file,
        rows=cleaned.accepted,
        repaired=cleaned.repaired,
        rejects=cleaned.rejected.kept(),
        stages={},
        source_bytes=index.bytes,
        source_digest=index.digest,
        records=cleaned.rejected.first_records(),
    )
    return loaded.put_together(made, given, [row_bytes, reject_bytes])


def _clean(
    context: StepContext,
    cleaning: Cleaning,
    index: batch.BatchHeader,
    records: bytes | memoryview,
) -> tuple[Cleaned, pa.Table]:
    """Return the cleaned rows, and the rejected ones with their records."""
    wanted, origin = cleaning.wanted, cleaning.table.origin
    require_columns(index.columns, wanted.columns, index.file, index.table)

    def select(sql: str, relation: str, rows: pa.Table) -> pa.Table:
        try:
            return context.stages.select(sql, {relation: rows})
        except QueryError as error:
            raise ApplicationError(f"{origin}: {error}") from None

    cleaned = clean_piece(stored_piece(index, records, wanted), cleaning, select, {})
    rejected = cleaned.rejected
    return cleaned, rejected.with_records(rejected.raw(rejected.lines))


def _written(path: str, rows: pa.Table) -> _Written:
    return stored_file(path, rows) if rows.num_rows else (None, b"")
