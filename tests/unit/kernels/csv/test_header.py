"""The first record: what counts as a list of column names."""

import numpy as np
import pytest
from numpy.typing import NDArray

from caudal.errors import DataError
from caudal.kernels.csv import Header, read_header


def as_array(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)


def names(data: bytes) -> tuple[str, ...]:
    found = read_header(as_array(data), "f.csv", final=True)
    assert found is not None
    return found[0].names


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a,b\n1,2\n", ("a", "b")),
        (b"a,b", ("a", "b")),
        (b"a,b\r\n", ("a", "b")),
        (b"\xef\xbb\xbfa,b\n", ("a", "b")),
        (b'\xef\xbb\xbf"a",b\n', ("a", "b")),
        (b"\n\r\na,b\n", ("a", "b")),
        (b' a , "b" \n', ("a", '"b"')),
        (b'"review/score","x, y"\n', ("review/score", "x, y")),
        (b'"say ""hi""",6"\n', ('say "hi"', '6"')),
        (b'"two\r\nlines",b\n', ("two\r\nlines", "b")),
        (b",a,\n", ("", "a", "")),
        (b"a,a\n", ("a", "a")),
        ("ñandú,\U0001f388\n".encode(), ("ñandú", "\U0001f388")),
        (b"a\xff,b\n", ("a\ufffd", "b")),
    ],
)
def test_names(data: bytes, expected: tuple[str, ...]) -> None:
    assert names(data) == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "f.csv is empty: a CSV file begins with a line of column names"),
        (b"\xef\xbb\xbf", "f.csv is empty: a CSV file begins with a line of column names"),
        (b" \r\n\n", "f.csv is empty: a CSV file begins with a line of column names"),
        (b'"a,b\n1,2\n', "f.csv is not CSV text (its first line: unclosed quote)"),
        (b'"a"b\n', "f.csv is not CSV text (its first line: stray quote)"),
        (b"\x1f\x8b\0\0\n", "f.csv is not CSV text: its first line is no list of column names"),
        ("a,b\n".encode("utf-16"), "f.csv is UTF-16: convert it to UTF-8"),
        ('\ufeff"a"\n'.encode("utf-16-be"), "f.csv is UTF-16: convert it to UTF-8"),
        (
            "a,b\n".encode("utf-16-le"),
            "f.csv is not CSV text: its first line is no list of column names",
        ),
        (b"a,b\r1,2\r", "f.csv ends its lines with \\r alone: convert them to \\n"),
    ],
)
def test_what_is_no_header(data: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        names(data)
    assert str(caught.value) == message


def test_the_bytes_it_takes_end_with_its_line() -> None:
    assert read_header(as_array(b"\xef\xbb\xbfa,b\r\n1,2"), "f.csv", final=True) == (
        Header(("a", "b")),
        8,
    )


@pytest.mark.parametrize("data", [b"a,b", b'"a', b'a,"b"', b"\xef\xbb", b"\n", b"a\r"])
def test_it_asks_for_more_bytes_until_its_line_ends(data: bytes) -> None:
    assert read_header(as_array(data), "f.csv", final=False) is None


def test_a_very_long_name_is_a_name() -> None:
    assert names(b"x" * 200_000 + b",b\n")[1] == "b"


def test_slots_say_where_each_field_goes() -> None:
    header = Header(("a", "b", "c", "d"))
    assert header.slots(["d", "b"]).tolist() == [-1, 1, -1, 0]
