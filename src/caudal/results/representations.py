"""Results encoded as Parquet or Arrow, in pieces. The command line and HTTP share it."""

import io
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO

import pyarrow as pa

from caudal.errors import UsageError
from caudal.results.answers import Result

_PIECE_BYTES = 1 << 20
_SPOOL_BYTES = 8 << 20  # a larger Parquet file uses a temporary file


def parquet_of(tables: Iterable[pa.Table]) -> Iterator[bytes]:
    """Yield a Parquet file, never held as a whole, with one row group per table."""
    import pyarrow.parquet as pq

    sink, writer = io.BytesIO(), None
    for table in tables:
        with _lacking("the result"):
            writer = writer or pq.ParquetWriter(pa.PythonFile(sink, "w"), table.schema)
            writer.write_table(table)
        yield _taken(sink)
    if writer is not None:
        writer.close()
        yield _taken(sink)


def _taken(sink: io.BytesIO) -> bytes:
    """Return the bytes written since the last call."""
    data = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return data


@contextmanager
def _lacking(name: str) -> Iterator[None]:
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise UsageError(
            f"{name}: Parquet has no type for one of its columns ({' '.join(str(error).split())}): "
            "CAST that column AS VARCHAR, or choose --format arrow"
        ) from error


def parquet_pieces(result: Result) -> Iterator[bytes]:
    """Yield a Parquet file."""
    import pyarrow.parquet as pq

    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as file:
        with _lacking(result.name):
            pq.write_table(result.table, file)
        yield from _content(file)


def arrow_pieces(result: Result) -> Iterator[bytes]:
    """Yield an Arrow IPC file."""
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as file:
        with pa.ipc.new_file(file, result.table.schema) as writer:
            writer.write_table(result.table)
        yield from _content(file)


def _content(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(_PIECE_BYTES):
        yield piece
