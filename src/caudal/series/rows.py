"""The rows of events and projections, and their Parquet files.

The same rows give the same bytes: the writer options are fixed, rows are in the order of the
primary key, and the file contains nothing about the time or the machine. It contains the name of
the Parquet library, so bytes may differ between its releases. The only effect is an unnecessary
rebuild.
"""

import pyarrow as pa
import pyarrow.parquet as pq

from caudal.errors import FormatError

PRIMARY_KEYS = ("obs_time", "internal_series_code")
MADE_BY_INGEST = ("vintage_date", "version")  # a source does not have them
KEY_COLUMNS = (
    *PRIMARY_KEYS,
    "obs_date",
    "provider",
    "frequency",
    "unit",
    "source_kind",
    *MADE_BY_INGEST,
)
"""The columns that a primary key may contain. The others are what a key finds."""

SCHEMA = pa.schema(
    [
        ("dataset_id", pa.string()),
        ("provider", pa.string()),
        ("frequency", pa.string()),
        ("unit", pa.string()),
        ("source_kind", pa.string()),
        ("obs_time", pa.timestamp("us", tz="UTC")),
        ("obs_date", pa.date32()),
        ("value", pa.float64()),
        ("internal_series_code", pa.string()),
        ("version", pa.int64()),
        ("vintage_date", pa.date32()),
        ("quality_flag", pa.string()),
    ]
)

_TEXTS = [field.name for field in SCHEMA if field.type == pa.string()]


def encode(table: pa.Table) -> bytes:
    """Return a Parquet file of these rows."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        version="2.6",
        compression="snappy",
        use_dictionary=_TEXTS,
        row_group_size=1 << 20,
        store_schema=False,
        write_statistics=True,
    )
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decode(data: bytes, key: str) -> pa.Table:
    """Return the rows of a Parquet file, with exactly the columns of SCHEMA."""
    try:
        table = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
        return table.select(SCHEMA.names).cast(SCHEMA)
    except (pa.ArrowException, KeyError) as error:
        raise FormatError(f"{key} is not a file of series: {error}") from error
