"""Cleans a piece of a file: the step that all engines share.

One row of `raw` gives one cleaned row, in the same order; so a rejected row finds its line again.
Rows that are certainly sound and that no query can see are counted, but not cleaned
(sql/prefilters.py).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.duck.prefilter import KeyFilters, Prefiltered, prefilter_rows
from caudal.errors import ApplicationError
from caudal.files.cleaning import Cleaning
from caudal.files.pieces import Cleaned, FilePiece, TextRows
from caudal.files.rejected import RejectedRows
from caudal.files.text_views import chosen_views
from caudal.kernels.csv import Numbers
from caudal.model import REJECT, ROW, SEEN, Table
from caudal.results.rejects import Rejects, strict_error

_NO_FILTERS: KeyFilters = {}

_ABOUT_ROWS = frozenset({REJECT, ROW, SEEN})

Select = Callable[[str, str, pa.Table], pa.Table]  # SQL, the relation it reads, its rows


def clean_piece(
    piece: FilePiece, cleaning: Cleaning, select: Select, filters: KeyFilters = _NO_FILTERS
) -> Cleaned:
    """Read a piece and clean it; `select` runs SQL over one relation.

    `filters` hold the key sets that the cleaning's prefilter needs.
    """
    import pyarrow.compute as pc

    text, table = piece.read(), cleaning.table
    prefiltered = prefilter_rows(_raw(text, cleaning), cleaning.prefilter, filters)
    raw = _with_rest(prefiltered, text, cleaning)
    cleaned = select(cleaning.sql, "raw", raw)
    numbers = cleaned.column(ROW)
    given = numbers[-1].as_py() + 1 if len(numbers) else 0
    if given != raw.num_rows:
        raise ApplicationError(
            f"{table.origin}: gives {given} rows for {raw.num_rows} of raw; "
            "clean row by row, and leave rows out with a `reject` column instead of WHERE"
        )
    rejected = RejectedRows.of(table.name, text.file, text.damaged)
    accepted = text.table.num_rows
    reasons = cleaned.column(REJECT)
    rows = cleaned.drop_columns([name for name in cleaned.column_names if name in _ABOUT_ROWS])
    good: NDArray[np.bool_] | None = None
    if reasons.null_count < len(reasons):
        bad = np.flatnonzero(pc.is_valid(reasons).to_numpy())
        lines = text.lines(prefiltered.places[numbers.take(bad).to_numpy()])
        told = reasons.take(bad).combine_chunks()
        rejected = RejectedRows.of(table.name, text.file, text.damaged, lines, told)
        accepted -= len(bad)
        is_good = pc.is_null(reasons)
        rows, good = rows.filter(is_good), is_good.to_numpy()
    if _is_last_unseen(cleaned):
        rows = rows.slice(0, rows.num_rows - 1)
    if len(rejected):
        rejected = replace(rejected, raw=text.records)
    for one in cleaning.copied:
        rows = rows.add_column(one.place, one.output, chosen_views(raw.column(one.column), good))
    return Cleaned(rows, accepted, rejected, text.repaired, piece)


def _is_last_unseen(cleaned: pa.Table) -> bool:
    """Return whether the last row is valid, seen by no query, and present only for the count."""
    if SEEN not in cleaned.column_names or not cleaned.num_rows:
        return False
    seen, reason = (cleaned.column(name)[-1].as_py() for name in (SEEN, REJECT))
    return reason is None and not seen


def note_rejects(rejects: Rejects, cleaned: Cleaned, table: Table, *, strict: bool) -> None:
    """Add the rejected rows of a piece to the report; in strict mode, fail on the first."""
    if cleaned.rejected and strict:
        raise strict_error(next(iter(cleaned.rejected)))
    records = cleaned.rejected.first_records() if rejects.keeps_records else {}
    rejects.add(cleaned.rejected, records)
    rejects.note_repaired(table.name, cleaned.repaired)


def _raw(text: TextRows, cleaning: Cleaning) -> pa.Table:
    """Return the relation `raw`, with nulls in columns that were not read."""
    present = set(text.table.column_names)
    absent = pa.nulls(text.table.num_rows, pa.string())
    columns = {
        name: text.table[name] if name in present else absent
        for name in cleaning.table.columns
        if name in present or name not in cleaning.wanted.later
    }
    for number, found in zip(cleaning.numbers, text.numbers, strict=True):
        columns[number.name] = found.values
    return pa.table(columns)


def _with_rest(prefiltered: Prefiltered, text: TextRows, cleaning: Cleaning) -> pa.Table:
    """Return the rows that are left, with the columns that only they need.

    Those are the columns whose reading was postponed, and the texts of numbers that the reader
    could not convert.
    """
    columns = text.later(prefiltered.places)
    for number, found in zip(cleaning.numbers, text.numbers, strict=True):
        columns[number.odd] = _odd_texts(found, prefiltered.places)
    raw = prefiltered.raw
    return pa.table([*raw.columns, *columns.values()], names=[*raw.column_names, *columns])


def _odd_texts(found: Numbers, places: NDArray[np.int64]) -> pa.Array:
    if not len(found.odd_rows):
        return pa.nulls(len(places), pa.string())
    nearest = np.minimum(np.searchsorted(found.odd_rows, places), len(found.odd_rows) - 1)
    is_odd = found.odd_rows[nearest] == places
    return found.odd_texts.cast(pa.string()).take(pa.array(nearest, mask=~is_odd))
