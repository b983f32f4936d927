"""Records beside the rows of a rejects report: bounded, and at their places in any window."""

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caudal.formats import outputs, report_records
from caudal.formats.outputs import PlaceRecord

ROWS = pa.table(
    {
        "table": ["t", "t", "u"],
        "reason": ["a", "b", None],
        "rows": [7, 1, 3],
        "first": [[{"file": "f", "line": 2}, {"file": "f", "line": 4}], [{"file": "g", "line": 9}],
                  []],
    },
    schema=outputs.REPORT,
)  # fmt: skip
RECORDS = (PlaceRecord(0, 1, "four"), PlaceRecord(1, 0, "<script>nine"))


def told(parts: list[pa.Table], begin: int = 0) -> list[list[str | None]]:
    made = pa.concat_tables(report_records.with_records(parts, RECORDS, begin))
    return [[one["record"] for one in row] for row in made.column("first").to_pylist()]


def test_records_come_to_their_places() -> None:
    (made,) = report_records.with_records([ROWS], RECORDS)
    assert made.drop_columns("first") == ROWS.drop_columns("first")
    assert made.column("first").to_pylist() == [
        [{"file": "f", "line": 2, "record": None}, {"file": "f", "line": 4, "record": "four"}],
        [{"file": "g", "line": 9, "record": "<script>nine"}],
        [],
    ]


@pytest.mark.parametrize("cut", range(4))
def test_in_parts_and_windows_too(cut: int) -> None:
    whole = [[None, "four"], ["<script>nine"], []]
    assert told([ROWS.slice(0, cut), ROWS.slice(cut)]) == whole
    assert told([ROWS.slice(cut)], cut) == whole[cut:]


def test_places_that_do_not_exist_and_other_columns_change_nothing() -> None:
    wrong = (PlaceRecord(9, 0, "x"), PlaceRecord(2, 0, "x"), PlaceRecord(0, 2, "x"))
    (made,) = report_records.with_records([ROWS], wrong)
    assert [one["record"] for row in made.column("first").to_pylist() for one in row] == [None] * 3
    other = pa.table({"first": [1]})
    assert list(report_records.with_records([other], RECORDS)) == [other]
    nulls = ROWS.set_column(3, ROWS.schema.field(3), pa.nulls(3, ROWS.schema.field(3).type))
    assert told([nulls]) == [[], [], []]


@given(st.lists(st.text(max_size=200), max_size=50), st.integers(0, 2_000))
def test_an_index_is_bounded_for_any_text(texts: list[str], more: int) -> None:
    records = [PlaceRecord(row, 0, text) for row, text in enumerate(texts)]
    records += [PlaceRecord(row, 1, "\0" * 200) for row in range(more)]
    kept = report_records.bounded(records)
    assert len(msgspec.json.encode(kept)) <= report_records.MOST_BYTES + 2
    assert kept[: len(texts)] == tuple(records[: len(texts)]), "first places come first"
    head = outputs.encode_result(outputs.Whose("j", "r", "rejects"), "", ROWS, kept)
    assert len(head) < 1 << 20, "what a client accepts as the head of a result"
