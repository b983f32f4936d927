"""The shipped applications against hand-made cases, an independent oracle and real data."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from caudal.application import find_application
from caudal.application.cases import first_difference, run_cases
from caudal.embedded.engine import run
from caudal.files.sources import Sources
from caudal.generate import generate
from caudal.results.answers import Answers

APPS = ("movies", "books")


def oracle(app: str) -> ModuleType:
    return importlib.import_module(f"tests.oracle.{app}")


def assert_same(answers: Answers, expected: dict[str, list[dict[str, Any]]]) -> None:
    for name, rows in expected.items():
        assert first_difference(answers[name].rows(), rows) == "", name


def assert_same_rejects(answers: Answers, expected: dict[str, dict[str, int]]) -> None:
    assert answers.rejects.counts() == {table: found for table, found in expected.items() if found}


@pytest.mark.parametrize("app", APPS)
def test_every_shipped_case(app: str) -> None:
    outcomes = run_cases(find_application(app))
    assert len(outcomes) >= 10
    assert {outcome.name: outcome.problems for outcome in outcomes if outcome.problems} == {}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    for app in APPS:
        generate(app, scale=0.01, seed=11, out=folder / app)
    return folder


@pytest.mark.parametrize("app", APPS)
def test_generated_data_against_the_oracle(app: str, generated: Path) -> None:
    answers = run(find_application(app), Sources(generated / app))
    assert_same(answers, oracle(app).answer(generated / app))
    assert_same_rejects(answers, oracle(app).reasons(generated / app))
    assert all(len(result) for result in answers.values())


def test_real_books(real_data: Path) -> None:
    answers = run(find_application("books"), Sources(real_data / "books"))
    assert_same(answers, oracle("books").answer(real_data / "books"))
    assert_same_rejects(answers, oracle("books").reasons(real_data / "books"))


def test_real_movies(real_data: Path) -> None:
    folder = real_data / "movies"
    small = folder / "ratings_small.csv"
    answers = run(find_application("movies"), Sources(folder, {"ratings": [str(small)]}))
    expected = oracle("movies").answer(folder, {"ratings": [small]})
    assert_same(answers, expected)
    assert_same_rejects(answers, oracle("movies").reasons(folder, {"ratings": [small]}))
