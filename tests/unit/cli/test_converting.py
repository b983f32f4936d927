"""Values after --param."""

import pytest

from caudal.cli.parameter_values import convert
from caudal.errors import UsageError
from caudal.model import ParameterValue


@pytest.mark.parametrize(
    ("text", "default", "value"),
    [("7", 1, 7), ("2.5", 1.0, 2.5), ("TRUE", False, True), ("Chile", "Peru", "Chile")],
)
def test_text_takes_the_type_of_the_default(
    text: str, default: ParameterValue, value: ParameterValue
) -> None:
    assert convert("p", text, default) == value


@pytest.mark.parametrize("text", ["1_000.5", "inf", "nan", "1,5", "", "1e999", "\u0663"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(UsageError, match="p must be a number"):
        convert("p", text, 1.0)


def test_wrong_values_are_named() -> None:
    with pytest.raises(UsageError, match="p must be a whole number"):
        convert("p", "many", 1)
    with pytest.raises(UsageError, match="p must be true or false"):
        convert("p", "maybe", True)
