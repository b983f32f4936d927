"""`$name` in queries."""

import pytest

from caudal.errors import ApplicationError
from caudal.sql.parameters import bind_parameters, literal, parameter_names


def test_only_real_parameters_are_replaced() -> None:
    sql = "SELECT $a, '$a', $$text $a$$, x -- $a\n FROM t WHERE y > $b::INT"
    assert parameter_names(sql, "q") == ["a", "b"]
    bound = bind_parameters(sql, {"a": "it's", "b": 3}, "q")
    assert bound == "SELECT 'it''s', '$a', $$text $a$$, x -- $a\n FROM t WHERE y > 3::INT"


def test_a_value_can_not_escape_its_quotes() -> None:
    assert literal("'; DROP TABLE x; --") == "'''; DROP TABLE x; --'"


def test_a_missing_value_says_where_to_put_it() -> None:
    with pytest.raises(ApplicationError, match=r"q.sql: no value for \$country: give --param"):
        bind_parameters("SELECT $country", {}, "q.sql")
