"""Results encoded as JSON, CSV, Parquet or Arrow, in pieces. The command line and HTTP share it.

Rows arrive as a sequence of tables and are converted to text a few at a time, so that their Python
values take little memory (`results/weight.py`).
"""

import csv
import io
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO

import pyarrow as pa

from caudal.errors import UsageError
from caudal.results.answers import Result
from caudal.results.values import json_bytes, python_values, text
from caudal.results.weight import light_parts

_PIECE_BYTES = 1 << 20
_SPOOL_BYTES = 8 << 20  # a larger Parquet file uses a temporary file


def json_pieces(result: Result) -> Iterator[bytes]:
    """Yield the output of `json_bytes` for all rows, a few rows at a time."""
    return json_of([result.table])


def csv_pieces(result: Result) -> Iterator[bytes]:
    """Yield CSV; lists and structs are JSON inside their field, null is an empty field."""
    return csv_of([result.table])


def json_of(tables: Iterable[pa.Table], most_row: int | None = None) -> Iterator[bytes]:
    """See json_pieces."""
    begun = False
    for part in _parts(tables, most_row):
        found = Result("", "", part).rows()
        rows = [json_bytes(row).decode().rstrip("\n").replace("\n", "\n ") for row in found]
        if rows:
            yield ((",\n " if begun else "[\n ") + ",\n ".join(rows)).encode()
            begun = True
    yield b"\n]\n" if begun else b"[]\n"


def csv_of(tables: Iterable[pa.Table], most_row: int | None = None) -> Iterator[bytes]:
    """See csv_pieces."""
    heading: bytes | None = None
    for table in tables:
        heading = _csv_lines([table.column_names]) if heading is None else heading
        for part in light_parts(table, most_row):
            columns = [[text(value) for value in python_values(one)] for one in part.columns]
            yield heading + _csv_lines([list(row) for row in zip(*columns, strict=True)])
            heading = b""
    yield heading or b""


def parquet_of(tables: Iterable[pa.Table], most_row: int | None = None) -> Iterator[bytes]:
    """Yield a Parquet file, never held as a whole, with one row group per table."""
    import pyarrow.parquet as pq

    del most_row  # unused: no row becomes Python values
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


def _parts(tables: Iterable[pa.Table], most_row: int | None) -> Iterator[pa.Table]:
    for table in tables:
        yield from light_parts(table, most_row)


def _content(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(_PIECE_BYTES):
        yield piece


def _csv_lines(rows: list[list[str]]) -> bytes:
    lines = io.StringIO(newline="")
    csv.writer(lines, lineterminator="\n").writerows(rows)
    return lines.getvalue().encode()
