"""Results as bytes, in pieces: JSON, CSV, Parquet, Arrow. The same on screen and over HTTP."""

import csv
import io
import tempfile
from collections.abc import Iterator
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from caudal.errors import UsageError
from caudal.results.answers import Result
from caudal.results.values import json_bytes, python_values, text

_ROWS = 16_384  # turned into text at a time
_PIECE_BYTES = 1 << 20
_SPOOL_BYTES = 8 << 20  # a larger Parquet file goes through a temporary file


def json_pieces(result: Result) -> Iterator[bytes]:
    """What json_bytes gives for all rows, some rows at a time."""
    begun = False
    for part in _parts(result):
        rows = [json_bytes(row).decode().rstrip("\n").replace("\n", "\n ") for row in part.rows()]
        if rows:
            yield ((",\n " if begun else "[\n ") + ",\n ".join(rows)).encode()
            begun = True
    yield b"\n]\n" if begun else b"[]\n"


def csv_pieces(result: Result) -> Iterator[bytes]:
    """Lists and structs stand as JSON inside their field; null is an empty field."""
    yield _csv_lines([result.table.column_names])
    for part in _parts(result):
        columns = [[text(value) for value in python_values(one)] for one in part.table.columns]
        yield _csv_lines([list(row) for row in zip(*columns, strict=True)])


def parquet_pieces(result: Result) -> Iterator[bytes]:
    """A Parquet file."""
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as file:
        try:
            pq.write_table(result.table, file)
        except pa.ArrowNotImplementedError as error:
            raise UsageError(
                f"{result.name}: Parquet lacks a type of it ({' '.join(str(error).split())}): "
                "CAST that column AS VARCHAR, or choose --format arrow"
            ) from error
        yield from _content(file)


def arrow_pieces(result: Result) -> Iterator[bytes]:
    """An Arrow IPC file."""
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as file:
        with pa.ipc.new_file(file, result.table.schema) as writer:
            writer.write_table(result.table)
        yield from _content(file)


def _parts(result: Result) -> Iterator[Result]:
    for batch in result.table.to_batches(max_chunksize=_ROWS):
        yield Result(result.name, result.title, pa.Table.from_batches([batch]))


def _content(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(_PIECE_BYTES):
        yield piece


def _csv_lines(rows: list[list[str]]) -> bytes:
    lines = io.StringIO(newline="")
    csv.writer(lines, lineterminator="\n").writerows(rows)
    return lines.getvalue().encode()
