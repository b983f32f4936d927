"""From a table's CSV files to numbered batches, as the client sends them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from caudal.formats import batch as batch_format
from caudal.kernels.csv import cut_batches


def cut_files(table: str, files: Iterable[Path], batch_bytes: int) -> Iterator[bytes]:
    """The batches of a table, numbered from 0 through all its files."""
    number = 0
    for path in files:
        with path.open("rb") as stream:
            for cut in cut_batches(stream, str(path), batch_bytes=batch_bytes):
                yield batch_format.encode(
                    table=table,
                    number=number,
                    file=str(path),
                    columns=cut.header.names,
                    first_line=cut.first_line,
                    offset=cut.offset,
                    newlines=cut.newlines,
                    data=cut.data.tobytes(),
                )
                number += 1
