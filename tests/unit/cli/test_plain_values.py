"""Plain values are taken as typer takes them, and what is not plain is left to typer."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from hypothesis import example, given
from hypothesis import strategies as st
from typer.main import get_command

from caudal.cli.plain_values import take_plainly


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def command(*, plainly: bool) -> Any:
    """A command that gives back what it was given, with a parameter of every kind."""
    program = typer.Typer(add_completion=False)

    @program.command()
    def echo(  # noqa: PLR0917 - a command's options are its parameters
        word: Annotated[str, typer.Argument()] = "none",
        path: Annotated[Path | None, typer.Option()] = None,
        count: Annotated[int, typer.Option(min=0, max=100)] = 7,
        rate: Annotated[float, typer.Option(min=1.0)] = 2.5,
        colour: Annotated[Colour, typer.Option()] = Colour.RED,
        form: Annotated[Literal["json", "text"], typer.Option()] = "json",
        many: Annotated[list[str] | None, typer.Option()] = None,
        yes: Annotated[bool, typer.Option()] = False,
    ) -> None:
        taken.append((word, path, count, rate, colour, form, many, yes))

    taken: list[Any] = []
    made = get_command(program)
    if plainly:
        take_plainly(made)

    def run(arguments: list[str]) -> Any:
        taken.clear()
        try:
            made.main(arguments, prog_name="echo", standalone_mode=False)
        except typer.BadParameter as error:
            return error.format_message()
        return taken[0], [type(one) for one in taken[0]]

    return run


PLAINLY, BY_TYPER = command(plainly=True), command(plainly=False)

VALUES = st.one_of(
    st.text(st.characters(exclude_characters="\0"), max_size=6),
    st.integers(-5, 120).map(str),
    st.floats(0, 50).map(str),
    st.sampled_from(["red", "RED", "json", "xml", "1_0", " 7", "+7", "1e3", "007", "٣", "\udcff"]),
)


@given(st.sampled_from(["path", "count", "rate", "colour", "form", "many"]), VALUES)
@example("count", "100")
@example("count", "101")
@example("rate", "0.5")
@example("many", "\udcff")
def test_an_option_is_taken_as_typer_takes_it(option: str, value: str) -> None:
    arguments = [f"--{option}={value}"]
    assert PLAINLY(arguments) == BY_TYPER(arguments)


@pytest.mark.parametrize(
    "arguments",
    [[], ["one"], ["ä"], ["--yes"], ["--no-yes"], ["--many", "a", "--many", "b"], ["\udcff"]],
)
def test_a_command_is_taken_as_typer_takes_it(arguments: list[str]) -> None:
    assert PLAINLY(arguments) == BY_TYPER(arguments)
