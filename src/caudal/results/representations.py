"""Results encoded as Parquet or Arrow, in pieces. The command line and HTTP share it."""

import io
import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from caudal.errors import UsageError

_PART_ROWS = 100_000
_GROUP_BYTES = 64 << 20  # of a row group, before it is compressed


def parquet_of(tables: Iterable[pa.Table], name: str = "the result") -> Iterator[bytes]:
    """Yield a Parquet file, never held as a whole, with one row group per table."""
    import pyarrow.parquet as pq

    sink, writer = _Sink(), None
    for table in tables:
        with _lacking(name):
            writer = writer or pq.ParquetWriter(pa.PythonFile(sink, "w"), table.schema)
            writer.write_table(table)
        yield sink.taken()
    if writer is not None:
        writer.close()
        yield sink.taken()


def arrow_of(tables: Iterable[pa.Table]) -> Iterator[bytes]:
    """Yield an Arrow IPC file, never held as a whole."""
    sink, writer = _Sink(), None
    for table in tables:
        writer = writer or pa.ipc.new_file(pa.PythonFile(sink, "w"), table.schema)
        writer.write_table(table)
        yield sink.taken()
    if writer is not None:
        writer.close()
        yield sink.taken()


def in_groups(parts: Iterable[pa.Table], group_bytes: int = _GROUP_BYTES) -> Iterator[pa.Table]:
    """Yield the rows in tables of one schema, each large enough to be a row group of a file."""
    waiting: list[pa.Table] = []
    for part in _of_one_schema(parts):
        waiting.append(part)
        if sum(one.nbytes for one in waiting) >= group_bytes:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _of_one_schema(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield small tables. Only if a type may become wider with later rows, keep all rows first."""
    coming = iter(parts)
    first = next(coming)
    if any(map(_may_widen, first.schema.types)):
        first, coming = pa.concat_tables([first, *coming], promote_options="permissive"), iter(())
    yield first.slice(0, _PART_ROWS)
    for table in itertools.chain([first.slice(_PART_ROWS)], coming):
        for place in range(0, table.num_rows, _PART_ROWS):
            yield table.slice(place, _PART_ROWS)


def _may_widen(kind: pa.DataType) -> bool:
    """Return whether a type may be that of a HUGEINT, which has 38 digits, or 39 if it must."""
    return bool(pa.types.is_decimal(kind)) and kind.scale == 0 and kind.precision >= 38


class _Sink(io.RawIOBase):
    """A file that keeps only what was written since it was last asked."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._position += len(piece)
        return len(piece)

    def taken(self) -> bytes:
        """Return the bytes written since the last call."""
        data, self._pieces = b"".join(self._pieces), []
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
