"""What is known of a table's files before any SQL: their columns, first rows, numbers and dates.

`caudal sql` and `caudal new` share it, so both read a file in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from caudal.application.case_rows import as_written
from caudal.application.sniff import SAMPLED_ROWS, Column, sample, sniff
from caudal.errors import DataError
from caudal.files.detect import unique_names
from caudal.files.inputs import FILENAME, InputFile
from caudal.files.pieces import column_names, require_commas
from caudal.files.values import convert, date_formats, decimal_commas, for_column
from caudal.model import Reading

_DOUBTFUL = r"^[+-]?[0-9]{1,3}(\.[0-9]{3})+$"  # a thousand, where commas are decimal


@dataclass(frozen=True)
class Examined:
    """The files of a table, how all of them are read, and their first rows as they stand."""

    files: tuple[InputFile, ...]
    reading: Reading
    rows: pa.Table
    columns: tuple[Column, ...]


def examine(files: Sequence[InputFile]) -> Examined:
    """Read the first rows of a table's files and infer the types of the columns."""
    for file in files:
        _require_names_for_sql(file)
    rows = _first_rows(files)
    reading = _with_values(files[0].reading, rows)
    converted = pa.table(
        {name: _converted(rows[name], name, reading) for name in rows.column_names}
    )
    columns = sniff(converted, _doubtful(rows, reading))
    read = tuple(replace(file, reading=reading) for file in files)
    return Examined(read, reading, rows, tuple(columns))


def _require_names_for_sql(file: InputFile) -> None:
    """Raise DataError if SQL does not tell two names apart."""
    names = [name for name in column_names(file) if name]
    for name, unique in zip(names, unique_names(names), strict=True):
        if name != unique:
            raise DataError(f"{file.name}: two columns are called {name!r} for SQL; rename one")


def _first_rows(files: Sequence[InputFile]) -> pa.Table:
    """Return the first rows of the files, with the columns of the first file, or of all."""
    names = [name for name in column_names(files[0]) if name]
    if files[0].reading.union_by_name:
        names = list(dict.fromkeys(name for file in files for name in column_names(file) if name))
        files = [replace(file, columns=tuple(names)) for file in files]
    for file in files[1:]:
        _require_columns_of(files[0], names, file)
    samples: list[pa.Table] = []
    for file in files:
        samples.append(sample(as_written(file), names))
        if sum(rows.num_rows for rows in samples) >= SAMPLED_ROWS:
            break
    return pa.concat_tables(samples)


def _require_columns_of(first: InputFile, names: Sequence[str], file: InputFile) -> None:
    """Raise DataError if a file lacks a column of the first file of the same pattern."""
    present = column_names(file)
    missing = [name for name in names if name not in present]
    if missing:
        require_commas(present, file.name)
        raise DataError(
            f"{file.name}: no column {missing[0]!r}, which {first.name} has; "
            "files of one pattern need the same columns, or --union-by-name"
        )


def _with_values(reading: Reading, rows: pa.Table) -> Reading:
    """Return the reading with the decimal commas and date formats that are certain."""
    texts = {name: _binary(rows[name]).drop_null() for name in rows.column_names
             if name != FILENAME}  # fmt: skip
    if reading.decimal is None:
        commas = decimal_commas(texts)
        reading = replace(reading, decimal=dict.fromkeys(commas, ",") if commas else None)
    if reading.date_format is None:
        reading = replace(reading, date_format=date_formats(texts) or None)
    return reading


def _binary(column: pa.ChunkedArray) -> pa.Array:
    joined = column.cast(pa.string()).cast(pa.binary()).combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        return joined.chunk(0) if joined.num_chunks else pa.array([], pa.binary())
    return joined


def _converted(column: pa.ChunkedArray, name: str, reading: Reading) -> pa.Array | pa.ChunkedArray:
    decimal, dates = for_column(reading.decimal, name), for_column(reading.date_format, name)
    if decimal is None and dates is None:
        return column
    return convert(_binary(column), decimal, dates).cast(pa.string())


def _doubtful(rows: pa.Table, reading: Reading) -> list[str]:
    """Return the columns with points that may stand between thousands."""
    if not isinstance(reading.decimal, dict):
        return []
    others = [name for name in rows.column_names if name not in reading.decimal]
    return [
        name for name in others
        if pc.any(pc.match_substring_regex(_binary(rows[name]), _DOUBTFUL)).as_py()
    ]  # fmt: skip
