"""From a piece of a file to clean rows: the step that every engine shares.

One row of `raw` gives one cleaned row, in the same order; so a rejected row finds its line again.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caudal.engine.catalog import Cleaning
from caudal.engine.reading import Piece, TextRows
from caudal.errors import ApplicationError, RejectedRowError
from caudal.kernels.csv import Numbers
from caudal.model import REJECT, ROW, RejectedRow, Table
from caudal.rejects import Rejects
from caudal.sql.numbers import Number

Select = Callable[[str, str, pa.Table], pa.Table]  # SQL, the relation it reads, its rows


@dataclass(frozen=True)
class Cleaned:
    """The rows of one piece that are kept, and those that were left out, in the order of lines.

    `accepted` counts the clean rows, also those that no query can see.
    """

    rows: pa.Table
    accepted: int
    rejected: list[RejectedRow]
    repaired: int
    piece: Piece


def clean_piece(piece: Piece, cleaning: Cleaning, select: Select) -> Cleaned:
    """Read a piece and clean it; `select` runs SQL over one relation."""
    text, table = piece.read(), cleaning.table
    cleaned = select(cleaning.sql, "raw", _raw(text, cleaning, select))
    places = cleaned.column(ROW)
    given = places[-1].as_py() + 1 if len(places) else 0
    if given != text.table.num_rows:
        raise ApplicationError(
            f"{table.origin}: gives {given} rows for {text.table.num_rows} of raw; "
            "clean row by row, and leave rows out with a `reject` column instead of WHERE"
        )
    rejected = [RejectedRow(table.name, text.file, line, reason) for line, reason in text.damaged]
    accepted = given
    reasons = cleaned.column(REJECT)
    rows = cleaned.drop_columns([REJECT, ROW])
    if reasons.null_count < len(reasons):
        bad = np.flatnonzero(pc.is_valid(reasons).to_numpy())
        lines = text.lines(places.take(bad).to_numpy())
        rejected += [
            RejectedRow(table.name, text.file, int(line), reason)
            for line, reason in zip(lines, reasons.take(bad).to_pylist(), strict=True)
        ]
        rejected.sort(key=lambda row: row.line)
        accepted -= len(bad)
        rows = rows.filter(pc.is_null(reasons))
    return Cleaned(rows, accepted, rejected, text.repaired, piece)


def note_rejects(rejects: Rejects, cleaned: Cleaned, table: Table, *, strict: bool) -> None:
    """Enter what a piece left out into the report, or fail on the first in strict mode."""
    if cleaned.rejected and strict:
        row = cleaned.rejected[0]
        raise RejectedRowError(f"{row.file} line {row.line}: {row.reason} (table {row.table})")
    rejects.add(cleaned.rejected)
    rejects.note_repaired(table.name, cleaned.repaired)


def _raw(text: TextRows, cleaning: Cleaning, select: Select) -> pa.Table:
    """The relation `raw`: what was read, and nulls in the columns that nobody reads."""
    rows = text.table.num_rows
    present = set(text.table.column_names)
    absent = pa.nulls(rows, pa.string())
    columns = {
        name: text.table[name] if name in present else absent for name in cleaning.table.columns
    }
    for number, found in zip(cleaning.numbers, text.numbers, strict=True):
        columns[number.name] = _whole_column(number, found, select)
    return pa.table(columns)


def _whole_column(number: Number, found: Numbers, select: Select) -> pa.Array:
    """A column of numbers, those that the kernel declined converted by SQL."""
    if not len(found.odd_rows):
        return found.values
    sql = f"SELECT {number.conversion('text')} AS value FROM odd"
    converted = select(sql, "odd", pa.table({"text": found.odd_texts}))["value"]
    mask = np.zeros(len(found.values), dtype=bool)
    mask[found.odd_rows] = True
    return pc.replace_with_mask(found.values, mask, converted.combine_chunks())
