"""An application's own tests: `cases/NAME/` holds input files and `expected.json`.

{"about": "what this case tests",
 "answers": {"q1": [{"title": "..."}]},     only these queries and checks run
 "rejects": {"movies": {"title is empty": 1}},   optional; absent means none
 "parameters": {"country": "Chile"}}             optional
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from caudal.decoding import decode_json
from caudal.errors import ApplicationError, CaudalError
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, ParameterValue
from caudal.results.values import json_value
from caudal.run_options import Engine, RunOptions

_TOLERANCE = 1e-9


class Expected(msgspec.Struct, forbid_unknown_fields=True):
    """The content of expected.json."""

    answers: dict[str, list[dict[str, Any]]]
    about: str = ""
    rejects: dict[str, dict[str, int]] = {}
    parameters: dict[str, ParameterValue] = {}


@dataclass(frozen=True)
class CaseOutcome:
    """The outcome of one case: `problems` is empty if all results are as expected."""

    name: str
    about: str
    problems: tuple[str, ...]


def run_cases(
    app: Application, options: RunOptions | None = None, engine: Engine = Engine.EMBEDDED
) -> list[CaseOutcome]:
    """Run every case of an application."""
    folders = sorted(path for path in (app.folder / "cases").glob("*") if path.is_dir())
    return [run_case(app, folder, options or RunOptions(), engine) for folder in folders]


def run_case(app: Application, folder: Path, options: RunOptions, engine: Engine) -> CaseOutcome:
    """Run the case in a folder."""
    expected = _read_expected(folder / "expected.json")
    names = list(expected.answers)
    checking = replace(app, queries=(*app.queries, *app.checks))
    try:
        answers = run_with(
            engine, checking, Sources(folder), names, expected.parameters, options=options
        )
    except CaudalError as error:
        return CaseOutcome(folder.name, expected.about, (str(error),))
    problems = []
    for name, rows in expected.answers.items():
        if name in answers.failures:
            problems.append(str(answers.failures[name]))
            continue
        difference = first_difference(json_value(answers[name].rows()), rows)
        if difference:
            problems.append(f"{name}: {difference}")
    problems += _reject_problems(answers.rejects.counts(), expected.rejects)
    return CaseOutcome(folder.name, expected.about, tuple(problems))


def _read_expected(path: Path) -> Expected:
    try:
        return decode_json(path.read_bytes(), Expected)
    except FileNotFoundError:
        raise ApplicationError(f"{path} is missing: write the expected answers there") from None
    except msgspec.MsgspecError as error:
        raise ApplicationError(f"{path}: {error}") from error


def _reject_problems(
    found: Mapping[str, Mapping[str, int]], expected: Mapping[str, Mapping[str, int]]
) -> list[str]:
    return [
        f"rejects of {table}: {dict(found.get(table, {}))} instead of "
        f"{dict(expected.get(table, {}))}"
        for table in sorted({*found, *expected})
        if dict(found.get(table, {})) != dict(expected.get(table, {}))
    ]


def first_difference(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> str:
    """Describe the first difference between two ordered lists of rows; empty if equal."""
    for place, (row, wanted) in enumerate(zip(found, expected, strict=False), start=1):
        if list(row) != list(wanted):
            return f"columns {list(row)} instead of {list(wanted)}"
        for name, value in row.items():
            if not same_value(value, wanted[name]):
                return f"row {place}, {name}: {value!r} instead of {wanted[name]!r}"
    if len(found) != len(expected):
        return f"{len(found)} rows instead of {len(expected)}"
    return ""


def same_value(one: Any, other: Any) -> bool:
    """Return whether two values are equal; numbers may differ by 1e-9 relative."""
    if isinstance(one, float | Decimal) or isinstance(other, float | Decimal):
        numbers = isinstance(one, int | float | Decimal) and isinstance(other, int | float)
        return numbers and math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=0.0)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_value, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same_value(one[key], other[key]) for key in one)
    return bool(one == other)
