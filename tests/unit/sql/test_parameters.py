"""`$name` in queries."""

import pytest

from caudal.errors import ApplicationError, UsageError
from caudal.model import ParameterValue
from caudal.sql.parameters import bind_parameters, convert, literal, parameter_names


def test_only_real_parameters_are_replaced() -> None:
    sql = "SELECT $a, '$a', $$text $a$$, x -- $a\n FROM t WHERE y > $b::INT"
    assert parameter_names(sql, "q") == ["a", "b"]
    bound = bind_parameters(sql, {"a": "it's", "b": 3}, "q")
    assert bound == "SELECT 'it''s', '$a', $$text $a$$, x -- $a\n FROM t WHERE y > 3::INT"


def test_a_value_can_not_escape_its_quotes() -> None:
    assert literal("'; DROP TABLE x; --") == "'''; DROP TABLE x; --'"


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


def test_a_missing_value_says_where_to_put_it() -> None:
    with pytest.raises(ApplicationError, match=r"q.sql: no value for \$country: give --param"):
        bind_parameters("SELECT $country", {}, "q.sql")
