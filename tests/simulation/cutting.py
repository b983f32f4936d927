"""Text of a CSV file, cut into batches that do not depend on where the file lay."""

import tempfile
from pathlib import Path

from caudal.files.batches import cut_files
from caudal.formats import batch as batch_format


def cut(table: str, text: str, batch_bytes: int) -> tuple[bytes, ...]:
    """The batches of one file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{table}.csv"
        path.write_text(text, encoding="utf-8")
        found = [batch_format.decode(one, "") for one in cut_files(table, [path], batch_bytes)]
    return tuple(
        batch_format.encode(
            table=table,
            number=index.number,
            file=f"{table}.csv",
            columns=index.columns,
            first_line=index.first_line,
            offset=index.offset,
            newlines=index.newlines,
            data=records,
        )
        for index, records in found
    )
