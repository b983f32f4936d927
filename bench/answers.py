"""Answers of a contestant as plain rows, and whether two contestants gave the same ones."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]
Answers = dict[str, list[Row]]

TOLERANCE = 1e-9
_NUMBER = (int, float)


class DifferentAnswersError(Exception):
    """Two contestants disagree, so their times cannot be compared. Mend the one that is wrong."""


def require_same(name: str, answers: Answers, other: str, expected: Answers) -> None:
    """Raise unless both hold the same rows for every query, whatever their order."""
    if answers.keys() != expected.keys():
        raise DifferentAnswersError(
            f"{name} answers {sorted(answers)}, {other} answers {sorted(expected)}"
        )
    for query, rows in answers.items():
        difference = _difference(rows, expected[query])
        if difference:
            raise DifferentAnswersError(f"{query}: {name} and {other} differ: {difference}")


def _difference(rows: Sequence[Row], expected: Sequence[Row]) -> str:
    """What is wrong, or nothing."""
    if len(rows) != len(expected):
        return f"{len(rows)} rows and {len(expected)} rows"
    pairs = zip(sorted(rows, key=_order), sorted(expected, key=_order), strict=True)
    return next((f"{one} and {two}" for one, two in pairs if not _same(one, two)), "")


def _order(row: Mapping[str, Any]) -> str:
    """Rows by their texts first: the last digits of a number must not decide the order."""
    numbers = {name: f"{value:.6g}" for name, value in row.items() if isinstance(value, _NUMBER)}
    texts = {name: value for name, value in row.items() if name not in numbers}
    return repr((sorted(texts.items()), sorted(numbers.items())))


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, dict) and isinstance(two, dict):
        return list(one) == list(two) and all(_same(one[name], two[name]) for name in one)
    if isinstance(one, _NUMBER) and isinstance(two, _NUMBER):
        return math.isclose(one, two, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(one == two)
