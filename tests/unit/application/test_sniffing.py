"""Types of columns: what each is alone, it is among others."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caudal.application.sniff import KINDS, TEXT, Column, sniff

# Texts of every kind, and some that only look like one.
TEXTS = (
    None, "1", "-3", "007", "1.5", "1e3", "1_000", "99999999999999999999", "nan",
    "2020-01-02", "2020-13-01", "2020-01-02 03:04:05", "2020-01-02T03:04:05+02:00", "true", "False",
    "['a', 'b']", "[]", "[{'id': 1, 'name': 'x'}]", "[broken", "text", " 1 ", "",
)  # fmt: skip

columns = st.lists(st.sampled_from(TEXTS), min_size=3, max_size=3)


def test_each_kind() -> None:
    texts = {
        "integer": ["1", None],
        "decimal": ["1.5", "2"],
        "double": ["1e300", "1"],
        "date": ["2020-01-02", None],
        "timestamp": ["2020-01-02 03:04:05", "2020-01-02"],
        "timestamptz": ["2020-01-02 03:04:05+01:00", "2020-01-02T03:04Z"],
        "boolean": ["true", "False"],
        "names": ["[{'id': 1, 'name': 'x'}]", "[]"],
        "items": ["['a', 'b']", "[]"],
        "text": ["1", "x"],
    }
    found = sniff(pa.table(texts))
    assert [column.name for column in found] == list(texts)
    assert [column.kind for column in found] == list(KINDS)


def test_a_column_without_any_text() -> None:
    nothing = pa.nulls(2, pa.string())
    found = sniff(pa.table({"a": nothing, "b": ["1", "1"], "c": nothing}))
    assert [found[0], found[2]] == [Column("a", TEXT), Column("c", TEXT)]
    assert (found[1].filled, found[1].distinct) == (2, 1)
    assert sniff(pa.table({"a": nothing.slice(2)})) == [Column("a", TEXT)]


@pytest.mark.long
@given(st.lists(columns, min_size=2, max_size=6))
@settings(max_examples=25, deadline=None)
def test_together_as_alone(texts: list[list[str | None]]) -> None:
    table = pa.table({f"c{place}": pa.array(one, pa.string()) for place, one in enumerate(texts)})
    assert sniff(table) == [sniff(table.select([name]))[0] for name in table.column_names]
