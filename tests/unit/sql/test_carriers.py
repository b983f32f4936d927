"""Types are parsed, rendered and carried; nothing but a type gets through."""

import duckdb
import pytest

from caudal.sql import carriers


@pytest.mark.parametrize(
    "text",
    [
        "INTEGER", "DECIMAL(4,1)", "TIME WITH TIME ZONE", "INTEGER[]", "INTEGER[3][]",
        "STRUCT(a INTEGER, \"b c\" VARCHAR[])", "STRUCT", "MAP(VARCHAR, STRUCT(x BIT))",
        "UNION(\"name\" VARCHAR, age SMALLINT)", "TUPLE(INTEGER, VARCHAR)", '"NULL"[]',
        "ENUM('it''s', 'a, b', ')', '\"')", "GEOMETRY('OGC:CRS84')",
        'STRUCT("say ""x""" INTEGER)',
    ],
)  # fmt: skip
def test_a_type_is_rendered_as_it_was(text: str) -> None:
    assert carriers.checked(text).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    "text",
    [
        "", "INTEGER)", "INTEGER; DROP TABLE t", "INTEGER) FROM t --", "ENUM('a", "STRUCT(a)",
        "STRUCT(a INTEGER", "INTEGER[x]", "INTEGER[", "DECIMAL(a)", "MAP()", "(INTEGER)", '"x"',
        "INTEGER/**/", "'INTEGER'", "STRUCT(a.b INTEGER)", "INTEGER[]x", "LIST(" * 99 + ")" * 99,
        "MAP(" * 99 + "A" + ")" * 99,
    ],
)  # fmt: skip
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(carriers.UnknownTypeError):
        carriers.checked(text)


def test_carriers() -> None:
    assert carriers.carrier("STRUCT(a ENUM('x'), b INTERVAL[])") == "STRUCT(a VARCHAR, b VARCHAR[])"
    assert carriers.carrier("TUPLE(ENUM('x'), DATE)[2]") == (
        "STRUCT(element1 VARCHAR, element2 DATE)[2]"
    )
    assert carriers.carrier("MAP(BIT, UHUGEINT)") is None
    for unknown in ("INET", "MADE_UP(3)", "AGGREGATE_STATE"):
        with pytest.raises(carriers.UnknownTypeError):
            carriers.carrier(unknown)


def test_every_type_of_duckdb_is_known() -> None:
    with duckdb.connect() as connection:
        kinds = [str(kind) for kind in connection.sql("FROM test_all_types()").types]
    for kind in kinds:
        assert carriers.leaving(kind, "v").count("v")
        carriers.shown(kind)


@pytest.mark.parametrize(
    "kind", ["UNION(a DATE)[3]", "MAP(DATE, UNION(a DATE))", "TUPLE(UNION(a DATE))"]
)
def test_some_unions_are_refused(kind: str) -> None:
    with pytest.raises(carriers.UnknownTypeError):
        carriers.leaving(kind, "v")
