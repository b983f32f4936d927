"""The rows of a case, written as the files of their table are written."""

import csv
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from caudal.files.inputs import InputFile
from caudal.files.reading import USUAL
from caudal.model import Reading

_NOT_TEXT = (".xlsx", ".xlsm", ".xls", ".jsonl", ".ndjson")


def as_written(file: InputFile) -> InputFile:
    """Return the file with fields as they stand: numbers and dates are not converted."""
    return replace(file, reading=replace(file.reading, decimal=None, date_format=None))


def write_rows(path: Path, rows: pa.Table, reading: Reading | None) -> None:
    """Write rows that the table reads again; rows of Excel and JSON become CSV."""
    how = reading or USUAL
    if path.suffix in _NOT_TEXT or how.format in ("json", "excel"):
        path, how = path.with_suffix(".csv"), USUAL
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding=how.encoding or "utf-8", newline="") as file:
        file.write("\n" * (how.skip or 0))
        writer = csv.writer(
            file, lineterminator="\n", delimiter=how.delimiter or ",", quotechar=how.quote or '"'
        )
        if how.header is not False:
            writer.writerow(rows.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in rows.columns), strict=True))
