"""The oracle and the shipped cases, each worked out apart from the other, must agree."""

import importlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

APPS = Path(__file__).parents[2] / "src" / "caudal" / "apps"
CASES = sorted(path.parent for path in APPS.glob("*/cases/*/expected.json"))


def case_name(case: Path) -> str:
    return f"{case.parents[1].name}-{case.name}"


def oracle_of(case: Path) -> Any:
    return importlib.import_module(f"tests.oracle.{case.parents[1].name}")


def expectation(case: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    return expected


def same(found: object, expected: object) -> bool:
    """Equal, with numbers within 1e-9 relative and columns in the same order."""
    if isinstance(found, dict) and isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[k], expected[k]) for k in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(found, int | float) and isinstance(expected, int | float):
        return math.isclose(found, expected, rel_tol=1e-9)
    return found == expected


def test_both_applications_ship_cases() -> None:
    assert {case.parents[1].name for case in CASES} == {"books", "movies"}


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_answers(case: Path) -> None:
    answers = oracle_of(case).answer(case)
    for query, expected in expectation(case)["answers"].items():
        assert same(answers[query], expected), (query, answers[query])


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_rejects(case: Path) -> None:
    expected = expectation(case).get("rejects", {})
    reasons = oracle_of(case).reasons(case)
    assert {table: counts for table, counts in reasons.items() if counts} == expected
    totals = {table: sum(expected.get(table, {}).values()) for table in reasons}
    assert oracle_of(case).rejects(case) == totals
