"""The shipped applications against hand-made cases, an independent oracle and real data."""

import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from caudal.application import find_application
from caudal.application.cases import first_difference, run_cases
from caudal.application.checks import run_checks
from caudal.embedded.engine import run
from caudal.files.sources import Sources
from caudal.generate import generate
from caudal.local.engines import run_with
from caudal.results.answers import Answers
from caudal.run_options import IN_PROCESS, Engine, RunOptions

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


@pytest.mark.parametrize("app", APPS)
def test_generated_data_passes_the_shipped_checks(app: str, generated: Path) -> None:
    application = find_application(app)
    outcomes, _ = run_checks(application, Sources(generated / app), {}, RunOptions())
    assert [outcome.name for outcome in outcomes if not outcome.passed] == []
    assert len(outcomes) == 2


OTHERS: dict[str, dict[str, Any]] = {
    "movies": {
        "country": "Spain", "partner": "Argentina", "from_year": 2001, "to_year": 2008,
        "top_countries": 3, "since_year": 1990, "top_actors": 4, "positive_from": 0.1,
    },
    "books": {
        "subject": "History", "word": "The", "from_year": 1950, "to_year": 2005, "min_decades": 2,
        "decade": 1980, "min_reviews": 5, "top_books": 3, "category": "History", "quantile": 0.5,
    },
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("engine", IN_PROCESS)
@pytest.mark.parametrize("app", APPS)
def test_other_values_of_every_parameter_against_the_oracle(
    app: str, engine: Engine, generated: Path
) -> None:
    application = find_application(app)
    assert OTHERS[app].keys() == application.parameters.keys()
    answers = run_with(engine, application, Sources(generated / app), None, OTHERS[app])
    assert_same(answers, oracle(app).answer(generated / app, parameters=OTHERS[app]))
    assert all(len(result) for result in answers.values())


@pytest.mark.parametrize("app", APPS)
def test_every_threshold_is_a_parameter(app: str) -> None:
    """The constants that are left say what a question means: one country, ten years, no zero."""
    left = {
        query.name: sorted(
            {*re.findall(r"'[^']*'|\b\d+(?:\.\d+)?\b", _without_comments(query.sql))}
        )
        for query in find_application(app).queries
    }
    assert left == MEANINGS[app]


MEANINGS = {
    "movies": {
        "q1": [], "q2": ["1"], "q4": [], "q5": ["'NEGATIVE'", "'POSITIVE'", "0", "1", "20", "38"],
        "q3": ["'MAX'", "'MIN'", "'rating'", "'title'", "1"],
    },
    "books": {"q1": [], "q2": ["10"], "q3": ["9"], "q4": ["9"], "q5": ["17", "18"]},
}  # fmt: skip


def _without_comments(sql: str) -> str:
    return re.sub("--.*", "", sql)


def test_real_books(real_data: Path) -> None:
    answers = run(find_application("books"), Sources(real_data / "books"))
    assert_same(answers, oracle("books").answer(real_data / "books"))
    assert_same_rejects(answers, oracle("books").reasons(real_data / "books"))


@pytest.mark.long
def test_real_movies(real_data: Path) -> None:
    folder = real_data / "movies"
    small = folder / "ratings_small.csv"
    answers = run(find_application("movies"), Sources(folder, {"ratings": [str(small)]}))
    expected = oracle("movies").answer(folder, {"ratings": [small]})
    assert_same(answers, expected)
    assert_same_rejects(answers, oracle("movies").reasons(folder, {"ratings": [small]}))
