"""Tables of clean CSV files and the meaning of their fields.

Python's `csv` reads the records, so this serves files whose quoting is sound. An empty field
is None, quoted or not; a blank line is no record.
"""

import ast
import csv
import functools
import math
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Generic, TypeVar

from textblob import TextBlob

T = TypeVar("T")
Row = dict[str, str | None]
Answers = dict[str, list[dict[str, object]]]
Files = dict[str, list[Path]]

INTEGER = re.compile(r"[+-]?[0-9]+")
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
YEAR = re.compile(r"[0-9]{4}")


class RowError(Exception):
    """The row is left out; the message is the reason."""


@dataclass(frozen=True)
class Table(Generic[T]):
    """The rows that were kept, in file order, and how many were left out for each reason."""

    rows: list[T]
    rejects: Counter[str]


def table(paths: Iterable[Path], parse: Callable[[Row], T]) -> Table[T]:
    """Read the files one after the other and keep the rows that `parse` accepts."""
    kept: list[T] = []
    rejects: Counter[str] = Counter()
    for path in paths:
        for header, fields in records(path):
            try:
                kept.append(parse(named(header, fields)))
            except RowError as error:
                rejects[str(error)] += 1
    return Table(kept, rejects)


def records(path: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Each record of a file with the file's header."""
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8-sig", newline="") as file:
        nonblank = (fields for fields in csv.reader(file) if fields)
        header = next(nonblank)
        for fields in nonblank:
            yield header, fields


def named(header: list[str], fields: list[str]) -> Row:
    if len(fields) < len(header):
        raise RowError("too few fields")
    if len(fields) > len(header):
        raise RowError("too many fields")
    return {name: field or None for name, field in zip(header, fields, strict=True)}


def need(value: T | None, reason: str) -> T:
    if value is None:
        raise RowError(reason)
    return value


def filled(row: Row, column: str) -> str:
    return need(row[column], f"{column} is empty")


def integer(text: str | None) -> int | None:
    """A whole number of at most 64 bits, or None."""
    if text is None or not INTEGER.fullmatch(text.strip(" ")):
        return None
    value = Decimal(text.strip(" "))
    return int(value) if -(2**63) <= value < 2**63 else None


def number(text: str | None) -> Fraction | None:
    """The value of a decimal number that a double can hold, or None."""
    if text is None or not NUMBER.fullmatch(text.strip(" ")):
        return None
    return exact(float(text)) if math.isfinite(float(text)) else None


def exact(value: float) -> Fraction:
    """The decimal number that a double prints as, so that 0.1 is one tenth."""
    return Fraction(repr(value))


def day(text: str | None) -> date | None:
    """A real calendar date written YYYY-MM-DD, or None."""
    if text is None or not DAY.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def year(text: str | None) -> int | None:
    """The first four ASCII digits in a row, or None."""
    found = YEAR.search(text or "")
    return int(found[0]) if found else None


def names(text: str) -> list[str] | None:
    """The `name` texts of a Python-literal list of dicts; None where it is not a list."""
    elements = literal_list(text)
    if elements is None:
        return None
    found = [element.get("name") for element in elements if isinstance(element, dict)]
    return [name for name in found if isinstance(name, str)]


def items(text: str) -> list[str] | None:
    """The texts of a Python-literal list; None where it is not a list."""
    elements = literal_list(text)
    if elements is None:
        return None
    return [element for element in elements if isinstance(element, str)]


def literal_list(text: str) -> list[object] | None:
    try:
        with warnings.catch_warnings():
            # Python warns about escapes it does not know ('\d'); they stay as they are written.
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


@functools.lru_cache(maxsize=100_000)
def polarity(text: str) -> Fraction:
    """What TextBlob's default analyzer says of a text."""
    return exact(float(TextBlob(text).sentiment.polarity))
