"""Where the split engine keeps what its stages made: files in one folder, never in memory.

Rules
1. Every output is kept as a cluster keeps it: mapped objects and folds, in their stored forms.
2. What a step reads is put together in memory, or, where memory is limited, in a file that DuckDB
   reads piece by piece, as often as its plan asks for it. The file goes with its last reader.
3. The folder belongs to one run and goes with it.
"""

import itertools
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from caudal.formats import frame, mapped, outputs

_ROWS_AT_ONCE = 16_384


class _Output(Protocol):
    """One object: the slices of one stage for one batch, or for one partition."""

    def count(self, stage: str) -> int: ...

    def slice(self, stage: str, number: int) -> pa.Table: ...


@dataclass(frozen=True)
class _Mapped:
    reader: mapped.MappedReader

    def count(self, stage: str) -> int:
        return len(self.reader.index.stages[stage].slices)

    def slice(self, stage: str, number: int) -> pa.Table:
        return self.reader.slice(stage, number)


@dataclass(frozen=True)
class _Folded:
    read: frame.Read
    index: outputs.Folded
    body: int

    def count(self, stage: str) -> int:
        return len(self.index.stage(stage).slices)

    def slice(self, stage: str, number: int) -> pa.Table:
        slices = self.index.stage(stage)
        span = slices.slices[number]
        found = span if span.length else slices.empty
        return mapped.read_rows(mapped.read_stream(self.read, self.body, found, stage))


class FileRows:
    """Rows in a file, for DuckDB: it asks for a stream each time that it scans them."""

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


@dataclass
class Kept:
    """The outputs of a run so far, in the order of batches and of partitions."""

    folder: Path
    scans: Mapping[str, str]  # scan -> its table
    is_limited: bool  # memory is: put things together in files
    _objects: dict[str, list[_Output]] = field(default_factory=dict)  # by table, or by fold
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def has_table(self, table: str) -> bool:
        return table in self._objects

    def keep_table(self, table: str) -> None:
        """A table is about to be mapped; it may turn out to have no batch."""
        self._objects.setdefault(table, [])

    def keep_mapped(self, table: str, data: bytes) -> None:
        """The next batch of a table."""
        reader = mapped.MappedReader(self._written(data), table)
        self._objects[table].append(_Mapped(reader))

    def keep_folded(self, fold: str, data: bytes) -> None:
        """The next partition of a fold."""
        read = self._written(data)
        self._objects.setdefault(fold, []).append(_Folded(read, *outputs.decode_fold(read, fold)))

    def slice(self, stage: str, number: int) -> "pa.Table | FileRows":
        """Slice `number` of a cut output; the whole of a gathered one."""
        return self._together(
            one.slice(stage, min(number, one.count(stage) - 1)) for one in self._of(stage)
        )

    def whole(self, stage: str) -> "pa.Table | FileRows":
        return self._together(
            one.slice(stage, number)
            for one in self._of(stage)
            for number in range(one.count(stage))
        )

    def _of(self, stage: str) -> list[_Output]:
        return self._objects[self.scans.get(stage, stage)]

    def _together(self, parts: Iterator[pa.Table]) -> "pa.Table | FileRows":
        return self._in_file(parts) if self.is_limited else pa.concat_tables(parts)

    def _in_file(self, parts: Iterator[pa.Table]) -> "FileRows":
        first = next(parts)
        path, rows = self._path(), 0
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, first.schema) as writer:
            for part in itertools.chain([first], parts):
                writer.write_table(part, max_chunksize=_ROWS_AT_ONCE)
                rows += part.num_rows
        return FileRows(path, first.schema, rows)

    def _written(self, data: bytes) -> frame.Read:
        path = self._path()
        path.write_bytes(data)

        def read(offset: int, length: int) -> bytes:
            with pa.OSFile(str(path), "rb") as file:
                data: bytes = file.read_at(length, offset)
                return data

        return read

    def _path(self) -> Path:
        return self.folder / str(next(self._numbers))
