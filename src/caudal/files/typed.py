"""Rows of typed columns: Parquet files, Excel sheets, lines of JSON.

The row numbers are those of the file. A column `DAMAGE` says of rows which are not there, or are
damaged, so that they keep their number and are reported by it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caudal.files.excel.rows import SheetRows, cell_text, read_sheet
from caudal.files.inputs import InputFile
from caudal.files.json_lines import key_names, read_objects
from caudal.files.typed_texts import DAMAGE
from caudal.files.values import convert, for_column

_ROWS = 65_536


@dataclass(frozen=True)
class TypedRows:
    """Some rows of a file; the first is row number `first`, counted from 1."""

    rows: pa.Table
    first: int
    position: int  # end offset in the file


def typed_names(file: InputFile) -> tuple[str, ...]:
    """Return the columns of a file of typed rows."""
    names = _NAMES[file.kind](file)
    return (*names, *file.added(names))


def typed_rows(file: InputFile, columns: Sequence[str] | None) -> Iterator[TypedRows]:
    """Yield the rows of a file in groups; `columns` None means all columns.

    For a file without rows, yield one empty group, as for a CSV file with only a header.
    """
    for found in _ROWS_OF[file.kind](file, columns):
        rows = _converted(_with_added(found.rows, file), file)
        damage = [DAMAGE] if DAMAGE in rows.column_names else []
        chosen = rows if columns is None else rows.select([*columns, *damage])
        yield TypedRows(chosen, found.first, found.position)


def _with_added(rows: pa.Table, file: InputFile) -> pa.Table:
    for name, text in file.added(tuple(rows.column_names)).items():
        value = pa.scalar(text or None, pa.string())
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


def _converted(rows: pa.Table, file: InputFile) -> pa.Table:
    """Convert numbers and dates in columns of text."""
    for place, name in enumerate(rows.column_names):
        decimal = for_column(file.reading.decimal, name)
        dates = for_column(file.reading.date_format, name)
        if (decimal == "," or dates) and pa.types.is_string(rows.schema.field(place).type):
            texts = rows[name].combine_chunks().cast(pa.binary())
            array = texts.chunk(0) if isinstance(texts, pa.ChunkedArray) else texts
            rows = rows.set_column(place, name, convert(array, decimal, dates).cast(pa.string()))
    return rows


def _parquet_names(file: InputFile) -> tuple[str, ...]:
    import pyarrow.parquet as pq

    with file.opened() as source:
        return tuple(pq.read_schema(source).names)


def _parquet_rows(file: InputFile, columns: Sequence[str] | None) -> Iterator[TypedRows]:
    import pyarrow.parquet as pq

    with file.opened() as source, pq.ParquetFile(source) as parquet:
        present = parquet.schema_arrow.names
        wanted = None if columns is None else [name for name in columns if name in present]
        done, total = 0, parquet.metadata.num_rows
        if not total:
            nothing = parquet.schema_arrow.empty_table()
            yield TypedRows(nothing if wanted is None else nothing.select(wanted), 1, file.size)
        for batch in parquet.iter_batches(_ROWS, columns=wanted):
            first = done + 1
            done += batch.num_rows
            yield TypedRows(pa.table(batch), first, file.size * done // total)


def _json_names(file: InputFile) -> tuple[str, ...]:
    with file.opened() as source:
        return key_names(file.pieces(source), file.name)


def _json_rows(file: InputFile, columns: Sequence[str] | None) -> Iterator[TypedRows]:
    names = _json_names(file) if columns is None else columns
    with file.opened() as source:
        for rows, first in read_objects(file.pieces(source), names, file.name):
            yield TypedRows(rows, first, source.tell())


def _sheet(file: InputFile) -> SheetRows:
    with file.opened() as source:
        return read_sheet(source.read(), file.name, file.reading)


def _sheet_rows(file: InputFile, columns: Sequence[str] | None) -> Iterator[TypedRows]:
    sheet = _sheet(file)
    total = len(sheet.rows)
    for start in range(0, max(total, 1), _ROWS):
        texts = [[cell_text(cell) for cell in row] for row in sheet.rows[start : start + _ROWS]]
        found = {
            name: pa.array([row[place] for row in texts], pa.string())
            for place, name in enumerate(sheet.names)
            if name and (columns is None or name in columns)
        }
        is_blank = np.array([not any(row) for row in texts], dtype=bool)
        damage = pa.array(np.zeros(len(texts), np.int8), mask=~is_blank)
        position = file.size * min(start + _ROWS, total) // max(total, 1)
        yield TypedRows(pa.table({**found, DAMAGE: damage}), sheet.first + start, position)


_NAMES: dict[str, Callable[[InputFile], tuple[str, ...]]] = {
    "parquet": _parquet_names,
    "json": _json_names,
    "excel": lambda file: _sheet(file).names,
}
_ROWS_OF: dict[str, Callable[[InputFile, Sequence[str] | None], Iterator[TypedRows]]] = {
    "parquet": _parquet_rows,
    "json": _json_rows,
    "excel": _sheet_rows,
}


def typed_notes(file: InputFile) -> tuple[str, ...]:
    """Return what was found about a file of typed rows, to be told."""
    return _sheet(file).notes if file.kind == "excel" else ()


def sound_rows(rows: pa.Table) -> tuple[pa.Table, pa.Array]:
    """Return the rows that are there and sound, without their damage, and the damage of all."""
    if DAMAGE not in rows.column_names:
        return rows, pa.nulls(rows.num_rows, pa.int8())
    damage = rows[DAMAGE].combine_chunks().cast(pa.int8())
    damage = damage.chunk(0) if isinstance(damage, pa.ChunkedArray) else damage
    return rows.drop_columns([DAMAGE]).filter(pc.is_null(damage)), damage
