"""One cell to one date or number, or the reason why not."""

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import pytest

from caudal.files.excel.places import column_index
from caudal.series.sources.cells import (
    Bad,
    FormulaError,
    Moment,
    is_blank,
    read_moment,
    read_number,
)

BUENOS_AIRES = ZoneInfo("America/Argentina/Buenos_Aires")


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (5, 5.0),
        (-0.5, -0.5),
        ("12", 12.0),
        (" 12.50 ", 12.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        (0, 0.0),
    ],
)
def test_numbers(cell: object, expected: float) -> None:
    assert read_number(cell) == expected


@pytest.mark.parametrize(
    "cell",
    ["", "  ", None, "n/d", "-", "1.234,5", "1,234", "12 (1)", "12%", True, float("nan"),
     float("inf"), "inf", "nan", "1e999", date(2024, 1, 1), time(1, 2), "１２", "0x1F", "1_000"],
)  # fmt: skip
def test_what_is_no_number_is_never_zero(cell: object) -> None:
    assert isinstance(read_number(cell), Bad)


def test_separators_are_those_of_the_config() -> None:
    assert read_number("1.234.567,89", ",", ".") == 1234567.89
    assert read_number("1234,5", ",", ".") == 1234.5
    assert isinstance(read_number("1.23,4", ",", "."), Bad)
    assert isinstance(read_number("12.34", ",", "."), Bad)


def test_a_day_is_its_local_midnight() -> None:
    expected = Moment(datetime(2024, 1, 31, 3, tzinfo=UTC), date(2024, 1, 31))
    assert read_moment(date(2024, 1, 31), "", BUENOS_AIRES) == expected
    assert read_moment("2024-01-31", "", BUENOS_AIRES) == expected
    assert read_moment("31/01/2024", "%d/%m/%Y", BUENOS_AIRES) == expected


def test_east_of_greenwich_the_local_date_decides() -> None:
    found = read_moment("2024-02-01", "", ZoneInfo("Asia/Tokyo"))
    assert found == Moment(datetime(2024, 1, 31, 15, tzinfo=UTC), date(2024, 2, 1))


def test_a_midnight_that_the_clocks_skipped_keeps_its_date() -> None:
    found = read_moment("2007-12-30", "", BUENOS_AIRES)
    assert found == Moment(datetime(2007, 12, 30, 3, tzinfo=UTC), date(2007, 12, 30))


def test_an_offset_in_the_text_is_honoured() -> None:
    found = read_moment("2024-02-01T01:00:00Z", "", BUENOS_AIRES)
    assert found == Moment(datetime(2024, 2, 1, 1, tzinfo=UTC), date(2024, 1, 31))


@pytest.mark.parametrize(
    "cell",
    ["", None, "Fuente: BCRA", 45000.0, "31/01/2024", time(3, 4), True, "2024-02-30",
     datetime(1899, 12, 30), date(1899, 12, 30)],
)  # fmt: skip
def test_what_is_no_date(cell: object) -> None:
    assert isinstance(read_moment(cell, "", BUENOS_AIRES), Bad)


def test_the_error_of_a_formula_is_neither_and_is_not_blank() -> None:
    error = FormulaError("#N/A")
    for found in (read_moment(error, "", BUENOS_AIRES), read_number(error)):
        assert isinstance(found, Bad)
        assert found.reason == "formula error: #N/A"
    assert not is_blank(error)


def test_the_first_and_last_year_do_not_overflow() -> None:
    assert isinstance(read_moment(date(9999, 12, 31), "", BUENOS_AIRES), Moment | Bad)
    assert isinstance(read_moment(date(1, 1, 1), "", ZoneInfo("Asia/Tokyo")), Bad)


def test_column_letters() -> None:
    assert [column_index(letters) for letters in ("A", "Z", "AA", "BE")] == [0, 25, 26, 56]
