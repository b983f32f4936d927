"""Inference of the type of a text column from its first rows.

Rules:
1. A type fits a column if every text in the sampled rows that is not empty converts to it.
2. A column stays text if a conversion would lose information: codes with leading zeros, numbers
   with more digits than the type holds. It also stays text if it has no text at all, or if it holds
   lists of neither names nor strings.
3. The first type in `KINDS` that fits is chosen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from caudal.duck.database import open_database
from caudal.errors import DataError
from caudal.files.pieces import Wanted, column_names, pieces, require_commas
from caudal.kernels.sentiment import load_model

SAMPLED_ROWS = 10_000
_BATCH_BYTES = 1 << 20


@dataclass(frozen=True)
class ColumnKind:
    """A column type, as SQL expressions in which `$` stands for the text."""

    convert: str
    fits: str  # aggregate over the non-null texts: whether all convert
    is_not: str  # the reject reason of a text that does not convert


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


def _all(condition: str) -> str:
    return f"bool_and(coalesce({condition}, false))"


_NO_CODE = "NOT regexp_matches($, '^[+-]?0[0-9]')"
_DAY = "$ GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"

TEXT = ColumnKind("$", "true", "")
NAMES = ColumnKind(
    "names($)",
    _all("$ LIKE '[%' AND names($) IS NOT NULL") + " AND max(len(names($))) > 0",
    "is not a list of names",
)
ITEMS = ColumnKind(
    "items($)",
    _all("$ LIKE '[%' AND items($) IS NOT NULL") + " AND max(len(items($))) > 0",
    "is not a list",
)
KINDS = (
    ColumnKind(
        "to_integer($)",
        _all(f"to_integer($) IS NOT NULL AND {_NO_CODE}"),
        "is not an integer",
    ),
    ColumnKind(
        "TRY_CAST(number_text($) AS DECIMAL(38, 9))",
        _all(
            "CAST(TRY_CAST(number_text($) AS DECIMAL(38, 9)) AS DOUBLE) = TRY_CAST($ AS DOUBLE) "
            f"AND {_NO_CODE}"
        ),
        "is not a number",
    ),
    ColumnKind(
        "TRY_CAST(number_text($) AS DOUBLE)",
        _all(f"isfinite(TRY_CAST(number_text($) AS DOUBLE)) AND {_NO_CODE}"),
        "is not a number",
    ),
    ColumnKind(
        f"CASE WHEN {_DAY}' THEN TRY_CAST($ AS DATE) END",
        _all(f"{_DAY}' AND TRY_CAST($ AS DATE) IS NOT NULL"),
        "is not a YYYY-MM-DD date",
    ),
    ColumnKind(
        f"CASE WHEN {_DAY}*' THEN TRY_CAST($ AS TIMESTAMP) END",
        _all(f"{_DAY}*' AND TRY_CAST($ AS TIMESTAMP) IS NOT NULL"),
        "is not a timestamp",
    ),
    ColumnKind(
        "CASE WHEN lower($) IN ('true', 'false') THEN CAST($ AS BOOLEAN) END",
        _all("lower($) IN ('true', 'false')"),
        "is not true or false",
    ),
    NAMES,
    ITEMS,
    TEXT,
)


def sample(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the first undamaged rows as text: the given columns, or all that have a name."""
    names = list(columns or (name for name in column_names(path) if name))
    _check_names(path, names)
    tables: list[pa.Table] = []
    for piece in pieces(path, Wanted(path.name, tuple(names)), batch_bytes=_BATCH_BYTES):
        tables.append(piece.read().table)
        if sum(table.num_rows for table in tables) >= SAMPLED_ROWS:
            break
    if not tables:
        return pa.table({name: pa.nulls(0, pa.string()) for name in names})
    return pa.concat_tables(tables).slice(0, SAMPLED_ROWS)


def sniff(rows: pa.Table) -> list[Column]:
    """Return the columns with their inferred types."""
    tests = ", ".join(kind.fits.replace("$", "text") for kind in KINDS)
    with open_database(load_model("lexicon")) as connection:
        connection.register("sampled", _one_below_another(rows))
        seen = connection.execute(
            f"SELECT place, count(*), count(DISTINCT text), {tests} FROM sampled "
            "WHERE text IS NOT NULL GROUP BY place"
        ).fetchall()
    known = {
        place: (KINDS[fits.index(True)], filled, distinct)
        for place, filled, distinct, *fits in seen
    }
    return [
        Column(name, *known.get(place, (TEXT, 0, 0)))
        for place, name in enumerate(rows.column_names)
    ]


def _one_below_another(rows: pa.Table) -> pa.Table:
    """Return the texts of all columns in one column, each with its column's number.

    So one query serves thousands of columns. With one query per column, DuckDB would look at all
    columns every time.
    """
    columns = [
        pa.table({"place": pa.repeat(pa.scalar(place, pa.int32()), len(rows)), "text": column})
        for place, column in enumerate(rows.columns)
    ]
    return pa.concat_tables(columns).combine_chunks()


def _check_names(path: Path, names: Sequence[str]) -> None:
    if not names:
        raise DataError(f"{path} names no columns in its first line")
    require_commas(names, str(path))
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            raise DataError(
                f"{path}: columns {seen[name.lower()]!r} and {name!r} have the same name for SQL; "
                "rename one"
            )
        seen[name.lower()] = name
