"""Numbers from bytes: equal to what SQL makes of the texts, unless the kernel declines."""

import io

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from caudal.kernels.csv import NumberColumn, cut_batches, read_batch
from caudal.sql.number_columns import extract_numbers
from caudal.sql.table_needs import Number

CONNECTION = duckdb.connect()
CONNECTION.execute(
    """CREATE MACRO to_integer(text) AS CASE WHEN regexp_full_match(trim(text), '[+-]?[0-9]+')
       THEN TRY_CAST(text AS BIGINT) END"""
)

texts = st.one_of(
    st.text("0123456789.-+ eE_", max_size=22),
    st.integers().map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=4).map(str),
    st.from_regex(r"-?[0-9]{1,19}(\\.[0-9]{0,11})?", fullmatch=True),
)


@pytest.mark.parametrize("number", [Number("n"), Number("n", 18, 9), Number("n", 6, 2)])
@given(st.lists(texts, min_size=1, max_size=8))
@example(["999999999999999999", "-0", "0.5", ".5", "5.", "-", ".", "00012", "9999.99", "10000"])
def test_like_sql(number: Number, values: list[str]) -> None:
    data = "n,x\n" + "".join(f"{value},1\n" for value in values)
    (batch,) = cut_batches(io.BytesIO(data.encode()), "f.csv")
    wanted = NumberColumn("n", number.precision, number.scale)
    (found,) = read_batch(batch, (), (wanted,)).numbers
    declined = set(found.odd_rows.tolist())
    for row, value in enumerate(values):
        convert = f"TRY_CAST($1::VARCHAR AS {number.type})"
        sql = f"SELECT {convert if number.precision else 'to_integer($1::VARCHAR)'}"
        expected = CONNECTION.execute(sql, [value or None]).fetchone()
        assert expected is not None
        if row not in declined:
            assert found.values[row].as_py() == expected[0], value
    assert found.odd_texts.to_pylist() == [values[row] for row in sorted(declined)]


def test_plain_numbers_are_not_declined() -> None:
    data = b"n\n1\n-20\n4.5\n0.125\n123456789.123456789\n"
    (batch,) = cut_batches(io.BytesIO(data), "f.csv")
    (decimals,) = read_batch(batch, (), (NumberColumn("n", 18, 9),)).numbers
    assert len(decimals.odd_rows) == 0
    (integers,) = read_batch(batch, (), (NumberColumn("n", 0, 0),)).numbers
    assert integers.odd_rows.tolist() == [2, 3, 4]


def test_only_conversions_of_raw_columns_are_taken_over() -> None:
    sql = "SELECT to_integer(raw.a) AS a, TRY_CAST(raw.b AS DECIMAL(10, 2)) AS b FROM raw"
    rewritten, numbers = extract_numbers(sql, ["a", "b"])
    assert numbers == (Number("a"), Number("b", 10, 2))
    assert 'COALESCE(raw."a as BIGINT", TO_INTEGER(raw."odd a as BIGINT"))' in rewritten
    sql = "SELECT TRY_CAST(number_text(raw.b) AS DECIMAL(10, 2)) AS b FROM raw"
    assert extract_numbers(sql, ["b"])[1] == (Number("b", 10, 2, is_plain=True),)
    for other in (
        "SELECT to_integer(trim(raw.a)) FROM raw",
        "SELECT to_integer(t.a) FROM (SELECT a FROM raw) t",
        "SELECT TRY_CAST(raw.a AS DECIMAL(38, 6)) FROM raw",
        "SELECT CAST(raw.a AS DECIMAL(10, 2)) FROM raw",
        "SELECT TRY_CAST(raw.a AS DOUBLE) FROM raw",
    ):
        assert extract_numbers(other, ["a", "b"]) == (other, ())
