"""Which types a dataset takes, and what it says of the others."""

import pytest

from caudal.datasets.types import cast_for, check_columns, delta_type, has_local_time
from caudal.errors import ApplicationError


@pytest.mark.parametrize(
    ("kind", "cast"),
    [
        ("HUGEINT", "DECIMAL(38,0)"),
        ("UBIGINT", "DECIMAL(20,0)"),
        ("UTINYINT", "SMALLINT"),
        ("TIME", "VARCHAR"),
        ("INTERVAL", "VARCHAR"),
        ("ENUM('a', 'b')", "VARCHAR"),
        ("UUID", "VARCHAR"),
        ("TIMESTAMP_NS", "TIMESTAMP"),
        ("INTEGER[3]", "INTEGER[]"),
        ("TIME[]", "VARCHAR[]"),
        ("STRUCT(a USMALLINT, b DATE)", "STRUCT(a INTEGER, b DATE)"),
        ("MAP(VARCHAR, UINTEGER)", "MAP(VARCHAR, BIGINT)"),
        ("UNION(a INTEGER, b VARCHAR)", "VARCHAR"),
        ("SOMETHING_NEW(3)", "VARCHAR"),
        *((kind, None) for kind in ("BOOLEAN", "BIGINT", "DECIMAL(38,6)", "VARCHAR[][]", "BLOB")),
    ],
)
def test_a_type_that_delta_lacks_gets_a_cast(kind: str, cast: str | None) -> None:
    assert cast_for(kind) == cast


def test_the_message_names_the_column_and_the_cast() -> None:
    with pytest.raises(ApplicationError, match=r'column .at. .*TIME.*CAST\("at" AS VARCHAR\)'):
        check_columns("tables/t.sql", "t", {"id": "INTEGER", "at": "TIME"})


def test_a_name_that_delta_cannot_have_is_refused() -> None:
    with pytest.raises(ApplicationError, match="allows no ' ' in a name"):
        check_columns("tables/t.sql", "t", {"review score": "DOUBLE"})


def test_the_table_of_rejected_rows_is_ours() -> None:
    with pytest.raises(ApplicationError, match="give this table another name"):
        check_columns("tables/rejects.sql", "Rejects", {"id": "INTEGER"})


def test_nested_types_are_written_as_delta_writes_them() -> None:
    assert delta_type('STRUCT("a""b" DECIMAL(4,2)[], c MAP(VARCHAR, DATE))') == {
        "type": "struct",
        "fields": [
            {
                "name": 'a"b',
                "type": {"type": "array", "elementType": "decimal(4,2)", "containsNull": True},
                "nullable": True,
                "metadata": {},
            },
            {
                "name": "c",
                "type": {
                    "type": "map",
                    "keyType": "string",
                    "valueType": "date",
                    "valueContainsNull": True,
                },
                "nullable": True,
                "metadata": {},
            },
        ],
    }


def test_only_a_timestamp_without_zone_needs_the_feature() -> None:
    assert has_local_time("STRUCT(a TIMESTAMP[])")
    assert not has_local_time("TIMESTAMP WITH TIME ZONE")
