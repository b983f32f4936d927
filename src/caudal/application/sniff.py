"""Inference of the type of a text column from its first rows.

Rules:
1. A type fits a column if every text in the sampled rows that is not empty converts to it without
   loss: '007' is no number, a decimal keeps every digit, a moment keeps its offset from UTC.
2. The same conversion applies to all later rows. A text that it cannot convert without loss
   rejects its row.
3. The first type in `KINDS` that fits is chosen. A column without any text is text.
4. Each type is tried on the first few texts of every column that has no type yet, and then on all
   sampled texts of the columns that are left. So a text is rarely converted more than twice.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from caudal.duck.database import Connection, open_database
from caudal.errors import DataError
from caudal.files.cleaning import Wanted
from caudal.files.inputs import InputFile
from caudal.files.pieces import column_names, pieces, require_commas
from caudal.kernels.sentiment import load_model

SAMPLED_ROWS = 10_000
_FIRST_TEXTS = 20
_BATCH_BYTES = 1 << 20
_COLUMN_BYTES = 1 << 10  # to read a piece takes some time for each column


@dataclass(frozen=True)
class ColumnKind:
    """A column type, as a SQL expression in which `$` stands for the text."""

    convert: str
    is_not: str  # the reject reason of a text that does not convert

    @property
    def found(self) -> str:
        """An expression for a text: positive if it converts, 0 for an empty list, else null."""
        if self in (NAMES, ITEMS):
            return f"len(CASE WHEN $ LIKE '[%' THEN {self.convert} END)"
        return f"CASE WHEN {self.convert} IS NOT NULL THEN 1 END"


@dataclass(frozen=True)
class Column:
    """A column of a file with its inferred type."""

    name: str
    kind: ColumnKind
    filled: int = 0  # sampled rows with a text
    distinct: int = 0  # different texts in those rows

    @property
    def repeats(self) -> bool:
        return 1 < self.distinct < self.filled


_DAY = "$ GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'"

TEXT = ColumnKind("$", "")
NAMES = ColumnKind("names($)", "is not a list of names")
ITEMS = ColumnKind("items($)", "is not a list")
KINDS = (
    ColumnKind("exact_integer($)", "is not an integer"),
    ColumnKind("exact_decimal($)", "is not a number"),
    ColumnKind("exact_double($)", "is not a number"),
    ColumnKind(f"CASE WHEN {_DAY} THEN TRY_CAST($ AS DATE) END", "is not a YYYY-MM-DD date"),
    ColumnKind("exact_timestamp($)", "is not a timestamp"),
    ColumnKind("exact_timestamptz($)", "is not a timestamp with an offset"),
    ColumnKind(
        "CASE WHEN lower($) IN ('true', 'false') THEN CAST($ AS BOOLEAN) END",
        "is not true or false",
    ),
    NAMES,
    ITEMS,
    TEXT,
)


def sample(file: InputFile, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the first undamaged rows as text: the given columns, or all that have a name."""
    names = list(columns or (name for name in column_names(file) if name))
    if not names:
        raise DataError(f"{file.name} names no columns in its first line")
    require_commas(names, file.name)
    tables: list[pa.Table] = []
    size = max(_BATCH_BYTES, len(names) * _COLUMN_BYTES)
    for piece in pieces(file, Wanted(file.name, tuple(names)), batch_bytes=size):
        tables.append(piece.read().table)
        if sum(table.num_rows for table in tables) >= SAMPLED_ROWS:
            break
    if not tables:
        return pa.table({name: pa.nulls(0, pa.string()) for name in names})
    return pa.concat_tables(tables).slice(0, SAMPLED_ROWS)


def sniff(rows: pa.Table, doubtful: Collection[str] = ()) -> list[Column]:
    """Return the columns with their inferred types. `doubtful` ones are text."""
    every = enumerate(column.cast(pa.string()).drop_null() for column in rows.columns)
    texts = {place: column for place, column in every if len(column)}
    kinds = {place: TEXT for place, name in enumerate(rows.column_names) if name in doubtful}
    with open_database(load_model("lexicon")) as connection:
        for kind in KINDS:
            first = {place: column.slice(0, _FIRST_TEXTS) for place, column in texts.items()
                     if place not in kinds}  # fmt: skip
            likely = _fitting(connection, kind, first, list_is_filled=False)
            fitting = _fitting(connection, kind, {place: texts[place] for place in likely})
            kinds |= dict.fromkeys(fitting, kind)
    return [
        Column(name, kinds[place], len(texts[place]), pc.count_distinct(texts[place]).as_py())
        if place in texts
        else Column(name, TEXT)
        for place, name in enumerate(rows.column_names)
    ]


def _fitting(
    connection: Connection,
    kind: ColumnKind,
    texts: Mapping[int, pa.ChunkedArray],
    *,
    list_is_filled: bool = True,
) -> list[int]:
    """Return the places of the columns whose texts all convert.

    A column of lists needs one that is not empty, if `list_is_filled`.
    """
    if kind is TEXT or not texts:
        return list(texts)
    connection.register("sampled", _one_below_another(texts))
    least = 1 if list_is_filled else 0
    found = connection.execute(
        f"SELECT place FROM (SELECT place, {kind.found.replace('$', 'text')} AS found FROM sampled)"
        f" GROUP BY place HAVING count(found) = count(*) AND max(found) >= {least}"
    ).fetchall()
    return [place for (place,) in found]


def _one_below_another(texts: Mapping[int, pa.ChunkedArray]) -> pa.Table:
    """Return the texts of all columns in one column, each with its column's number.

    So one query serves thousands of columns. With one query per column, DuckDB would look at all
    columns every time.
    """
    columns = [
        pa.table({"place": pa.repeat(pa.scalar(place, pa.int32()), len(column)), "text": column})
        for place, column in texts.items()
    ]
    return pa.concat_tables(columns).combine_chunks()
