"""Profiles of tables: nulls, distinct values, extremes and a histogram of each column.

Two SELECTs per table: the first one asks for counts and extremes of all columns, the second one,
which needs the extremes, for the histograms of those that are numbers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from caudal.sql.quoting import quote

BINS = 20
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT",
            "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL")  # fmt: skip
_MOST_TEXT = 60  # characters of an extreme


class ColumnProfile(msgspec.Struct, frozen=True):
    """What the values of one column are like."""

    name: str
    type: str
    nulls: int
    distinct: int  # about
    least: str | None
    most: str | None
    bins: tuple[int, ...] = ()  # rows, from the least to the most value


class ProfiledTable(msgspec.Struct, frozen=True):
    """What a table holds."""

    table: str
    rows: int
    columns: tuple[ColumnProfile, ...]


@dataclass(frozen=True)
class NumberSpan:
    """The extremes of a column of numbers, which has the place `place` in its table."""

    place: int
    name: str
    least: float
    most: float


def is_number(kind: str) -> bool:
    """Return whether DuckDB's type is one of numbers.

    >>> is_number("DECIMAL(9,2)"), is_number("VARCHAR"), is_number("INTEGER[]")
    (True, False, False)
    """
    return kind.upper().startswith(_NUMBERS) and not kind.endswith("]")


def counts_select(table: str, columns: Sequence[str]) -> str:
    """Return the SELECT for counts and extremes: one row."""
    parts = ["count(*) AS n"]
    for place, name in enumerate(columns):
        column = quote(name)
        parts += [
            f"count({column}) AS known{place}",
            f"approx_count_distinct({column}) AS distinct{place}",
            f"left(CAST(min({column}) AS VARCHAR), {_MOST_TEXT}) AS least{place}",
            f"left(CAST(max({column}) AS VARCHAR), {_MOST_TEXT}) AS most{place}",
        ]
    return f"SELECT {', '.join(parts)} FROM {quote(table)}"


def number_spans(schema: Mapping[str, str], row: Mapping[str, Any]) -> list[NumberSpan]:
    """Return the columns of numbers that have a histogram: more than one value, all finite."""
    found = []
    for place, (name, kind) in enumerate(schema.items()):
        least, most = row[f"least{place}"], row[f"most{place}"]
        if not is_number(kind) or least is None or most is None:
            continue
        span = NumberSpan(place, name, float(least), float(most))
        if math.isfinite(span.least) and math.isfinite(span.most) and span.least < span.most:
            found.append(span)
    return found


def bins_select(table: str, spans: Sequence[NumberSpan]) -> str:
    """Return the SELECT for all histograms: rows of place, bin and count."""
    return " UNION ALL ".join(
        f"SELECT {one.place} AS place, {_bin(one)} AS bin, count(*) AS n FROM {quote(table)} "
        f"WHERE {quote(one.name)} IS NOT NULL GROUP BY 2"
        for one in spans
    )


def _bin(span: NumberSpan) -> str:
    share = f"(CAST({quote(span.name)} AS DOUBLE) - {span.least!r}) / {span.most - span.least!r}"
    return f"least({BINS - 1}, greatest(0, CAST(floor({share} * {BINS}) AS INTEGER)))"


def profile_of(
    table: str,
    schema: Mapping[str, str],
    row: Mapping[str, Any],
    bins: Sequence[Mapping[str, Any]],
) -> ProfiledTable:
    """Return the profile from the rows of both SELECTs."""
    counted: dict[int, list[int]] = {}
    for one in bins:
        counted.setdefault(one["place"], [0] * BINS)[one["bin"]] = one["n"]
    columns = tuple(
        ColumnProfile(
            name,
            kind,
            row["n"] - row[f"known{place}"],
            min(row[f"distinct{place}"], row[f"known{place}"]),
            row[f"least{place}"],
            row[f"most{place}"],
            tuple(counted.get(place, ())),
        )
        for place, (name, kind) in enumerate(schema.items())
    )
    return ProfiledTable(table, row["n"], columns)
