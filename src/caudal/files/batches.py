"""From a table's files to numbered batches, as the client sends them.

The same files, found and cut at the same places, as the engines of one process read them: CSV,
CSV in gzip or zstd, and Parquet, whose rows travel typed and become text where they are read.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path

import pyarrow as pa

from caudal.files.pieces import (
    column_names,
    is_compressed,
    is_parquet,
    one_line_errors,
    text_stream,
    typed_rows,
)
from caudal.formats import batch as batch_format
from caudal.kernels.csv import cut_batches


def cut_files(
    table: str,
    files: Iterable[Path],
    batch_bytes: int,
    *,
    columns: Collection[str] | None = None,
    compress: bool = True,
) -> Iterator[bytes]:
    """The batches of a table, numbered from 0 through all its files.

    `columns` names those that are wanted of typed rows; None: all. Without `compress` the records
    of a plain CSV file stay as they are.
    """
    for pack in cut_unpacked(table, files, batch_bytes, columns=columns, compress=compress):
        yield pack()


def cut_unpacked(
    table: str,
    files: Iterable[Path],
    batch_bytes: int,
    *,
    columns: Collection[str] | None = None,
    compress: bool = True,
) -> Iterator[Callable[[], bytes]]:
    """The same, each batch still to be packed, by whichever thread sends it."""
    number = 0
    for path in files:
        with one_line_errors(path):
            cut = _typed(path, columns) if is_parquet(path) else _records(path, batch_bytes)
            packs = compress or is_parquet(path) or is_compressed(path)
            for fields in cut:
                yield partial(
                    batch_format.encode,
                    table=table,
                    number=number,
                    file=str(path),
                    compress=packs,
                    **fields,
                )
                number += 1


def warm_up() -> None:
    """Load the code that cuts, a quarter of a second that a caller may have while it waits."""
    for _ in cut_batches(BytesIO(b'a\n"b"\n"c"\n'), "nothing", batch_bytes=8):
        pass


def _records(path: Path, batch_bytes: int) -> Iterator[batch_format.BatchContent]:
    with path.open("rb") as file:
        for cut in cut_batches(text_stream(path, file), str(path), batch_bytes=batch_bytes):
            yield {
                "columns": cut.header.names,
                "first_line": cut.first_line,
                "offset": cut.offset,
                "newlines": cut.newlines,
                "data": cut.data.data,
            }


def _typed(path: Path, columns: Collection[str] | None) -> Iterator[batch_format.BatchContent]:
    """Rows as Arrow streams, not compressed by Arrow: so the same rows give the same bytes."""
    wanted = [name for name in column_names(path) if columns is None or name in columns]
    for rows in typed_rows(path, wanted):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.rows.schema) as writer:
            writer.write_table(rows.rows)
        yield {
            "columns": tuple(rows.rows.column_names),
            "first_line": rows.first,
            "offset": rows.first - 1,
            "newlines": 0,
            "data": memoryview(sink.getvalue()),
            "records": "arrow",
        }
