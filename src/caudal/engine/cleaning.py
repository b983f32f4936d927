"""From a piece of a file to clean rows: the step that every engine shares.

One row of `raw` gives one cleaned row, in the same order; so a rejected row finds its line again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caudal.engine.reading import Piece, TextRows
from caudal.errors import ApplicationError, RejectedRowError
from caudal.model import REJECT, RejectedRow, Table
from caudal.rejects import Rejects


@dataclass(frozen=True)
class Cleaned:
    """The clean rows of one piece, and those that were left out, in the order of their lines."""

    rows: pa.Table
    rejected: list[RejectedRow]
    repaired: int
    piece: Piece


def clean_piece(piece: Piece, table: Table, select: Callable[[pa.Table], pa.Table]) -> Cleaned:
    """Read a piece and clean it; `select` runs the table's SQL over the relation `raw`."""
    text = piece.read()
    cleaned = select(_all_columns(text.table, table.columns))
    if cleaned.num_rows != text.table.num_rows:
        raise ApplicationError(
            f"{table.origin}: gives {cleaned.num_rows} rows for {text.table.num_rows} of raw; "
            "clean row by row, and leave rows out with a `reject` column instead of WHERE"
        )
    rejected = [RejectedRow(table.name, text.file, line, reason) for line, reason in text.damaged]
    reasons = cleaned.column(REJECT)
    if reasons.null_count < len(reasons):
        rejected += _rejected(text, reasons, table)
        rejected.sort(key=lambda row: row.line)
        cleaned = cleaned.filter(pc.is_null(reasons))
    return Cleaned(cleaned.drop_columns([REJECT]), rejected, text.repaired, piece)


def note_rejects(rejects: Rejects, cleaned: Cleaned, table: Table, *, strict: bool) -> None:
    """Enter what a piece left out into the report, or fail on the first in strict mode."""
    if cleaned.rejected and strict:
        row = cleaned.rejected[0]
        raise RejectedRowError(f"{row.file} line {row.line}: {row.reason} (table {row.table})")
    rejects.add(cleaned.rejected)
    rejects.note_repaired(table.name, cleaned.repaired)


def _rejected(text: TextRows, reasons: pa.ChunkedArray, table: Table) -> list[RejectedRow]:
    bad = np.flatnonzero(pc.is_valid(reasons).to_numpy())
    lines = text.lines(bad)
    return [
        RejectedRow(table.name, text.file, int(line), reason)
        for line, reason in zip(lines, reasons.take(bad).to_pylist(), strict=True)
    ]


def _all_columns(text: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The columns that were read, and nulls for those that nobody reads."""
    absent = pa.nulls(text.num_rows, pa.string())
    present = set(text.column_names)
    return pa.table({name: text[name] if name in present else absent for name in columns})
