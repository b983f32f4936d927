"""Concatenates the inputs of a step: in memory if they are small, else in a file.

A sandbox that may spill reads a large input from a file, piece by piece, each time that its plan
scans it. The file is not mapped into memory, because mapped rows count as memory of the process. It
is deleted with its last reader.
"""

import itertools
import os
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from caudal.duck.sandbox import SandboxLimits

_ROWS_AT_ONCE = 16_384
_IN_MEMORY = 4  # the inputs of one step take at most this part of the sandbox's memory


class FileRows:
    """Rows in a file. DuckDB opens a stream each time that it scans them."""

    def __init__(self, path: Path, schema: pa.Schema, rows: int) -> None:
        self.schema = schema
        self.num_rows = rows
        self._path = path
        weakref.finalize(self, path.unlink, missing_ok=True)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._opened().__arrow_c_stream__(requested_schema)

    def read_all(self) -> pa.Table:
        return self._opened().read_all()

    def _opened(self) -> pa.RecordBatchReader:
        return pa.ipc.open_stream(pa.OSFile(str(self._path), "rb"))


Rows: TypeAlias = pa.Table | FileRows


def put_together(tables: Iterable[pa.Table], limits: SandboxLimits, inputs: int = 1) -> Rows:
    """Concatenate one or more tables, for a step with this many inputs."""
    most_bytes = limits.memory_bytes // _IN_MEMORY // inputs
    coming = iter(tables)
    held: list[pa.Table] = []
    size = 0
    for table in coming:
        held.append(table)
        size += table.nbytes
        if limits.spill is not None and size > most_bytes:
            return _in_file(itertools.chain(held, coming), held[0].schema, limits.spill)
    return pa.concat_tables(held)


def _in_file(tables: Iterable[pa.Table], schema: pa.Schema, folder: Path) -> FileRows:
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix="input-", dir=folder)
    os.close(descriptor)
    rows = 0
    with pa.OSFile(name, "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for table in tables:
            writer.write_table(table, max_chunksize=_ROWS_AT_ONCE)
            rows += table.num_rows
    return FileRows(Path(name), schema, rows)
