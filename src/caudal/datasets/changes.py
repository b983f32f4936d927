"""Which rows of an answer are new since the one before. Rows are compared whole, with repeats."""

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa

from caudal.results.values import python_values


@dataclass(frozen=True)
class Changed:
    """The rows of the new answer that the old one lacks, and those of the old one that are gone."""

    added: tuple[int, ...]  # places in the new answer
    gone: tuple[int, ...]  # places in the old one

    def __bool__(self) -> bool:
        return bool(self.added or self.gone)


def changed_rows(old: pa.Table, new: pa.Table) -> Changed:
    """Compare two answers of the same query."""
    before, after = _rows(old), _rows(new)
    return Changed(_lacking(after, before), _lacking(before, after))


def _lacking(rows: list[tuple[str, ...]], others: list[tuple[str, ...]]) -> tuple[int, ...]:
    left = Counter(others)
    found = []
    for place, row in enumerate(rows):
        if left[row]:
            left[row] -= 1
        else:
            found.append(place)
    return tuple(found)


def _rows(table: pa.Table) -> list[tuple[str, ...]]:
    columns = [[repr(value) for value in python_values(column)] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
