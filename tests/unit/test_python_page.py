"""The page of the Python API says what the code says, and its examples run."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import caudal
from caudal.results.answers import Answers, Result

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "python.md"
TEXT = PAGE.read_text(encoding="utf-8")
FUNCTIONS: tuple[Callable[..., Any], ...] = (caudal.run, caudal.sql, caudal.sentiment)
INNER = {"name", "title", "table", "results", "operators"}  # attributes that users need not know


@pytest.fixture
def example_data(tmp_path: Path) -> Path:
    (tmp_path / "books_data.csv").write_text(
        "Title,authors,publisher,publishedDate,categories\n"
        "A,['X'],P,1995,['Fiction']\nB,['Y'],P,2004,['Fiction']\n"
    )
    (tmp_path / "Books_rating.csv").write_text(
        "Title,review/score,review/text\nA,5,good\nA,4,bad\nB,3,fine\n"
    )
    return tmp_path


def signature(function: Callable[..., Any]) -> str:
    """The signature without the types of its parameters."""
    found = inspect.signature(function)
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in found.parameters.values()]
    returned = found.return_annotation
    name = returned if isinstance(returned, str) else returned.__name__
    shown = found.replace(parameters=plain, return_annotation=inspect.Signature.empty)
    return f"caudal.{function.__name__}{shown} -> {name}"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_signatures_are_those_of_the_code(function: Callable[..., Any]) -> None:
    assert f"\n{signature(function)}\n" in TEXT


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_argument_is_explained(function: Callable[..., Any]) -> None:
    explained = set(re.findall(r"`(\w+)", TEXT))
    assert set(inspect.signature(function).parameters) <= explained


def test_everything_public_is_named() -> None:
    public = {*caudal.__all__, *vars(Result), *vars(Answers)} - INNER
    wanted = {name for name in public if not name.startswith("_")} | {"__arrow_c_stream__"}
    assert {name for name in wanted if not re.search(rf"\b{name}\b", TEXT)} == set()


def test_every_block_runs(example_data: Path) -> None:
    names: dict[str, Any] = {"example_data": example_data}
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) >= 8
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["value"]["value"] == [10.0, 12.5]
