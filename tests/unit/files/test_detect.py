"""What is found in the first bytes of a file, and what is left alone."""

import pyarrow as pa
import pytest

from caudal.errors import UsageError
from caudal.files.detect import Form, detect, unique_names
from caudal.files.encodings import find_encoding
from caudal.files.reading import checked
from caudal.files.values import convert, date_formats, decimal_commas
from caudal.model import Reading


def found(text: str, reading: Reading = Reading()) -> Form:  # noqa: B008, it never changes
    form = detect(text.encode(), reading, final=True)
    assert form is not None
    return form


@pytest.mark.parametrize(
    ("text", "delimiter", "names", "skip"),
    [
        ("a;b\n1;2\n", ";", "a b", 1),
        ("a\tb\n1\t2,5\n", "\t", "a b", 1),
        ("a|b\n1|2\n3|4\n", "|", "a b", 1),
        ("a,b\n1;2,3\n", ",", "a b", 1),
        ("a\n1;2\n", ",", "a", 1),
        ("name;price\nx;1,5\ny;2,5\n", ";", "name price", 1),
        ("Report\n\na;b\n1;2\n3;4\n", ";", "a b", 3),
        ("# of today, and more\na,b\n1,2\n", ",", "a b", 2),
        ("bob\na,b\nc,d\n", ",", "bob", 1),  # too many fields, or a line before: not certain
        ("1,bob\n2,ann\n", ",", "column1 column2", 0),
        ("2020-01-01,5.5\n2020-01-02,6.5\n", ",", "column1 column2", 0),
        ("country,2019,2020\nx,1,2\n", ",", "country 2019 2020", 1),  # years may be names
        ("1,2,3\n4,5,6\n", ",", "1 2 3", 1),  # so may numbers that count up
        ("id,name\n1,x,\n2,y,\n", ",", "id name ", 1),
        ("a,A,b,a_2\n1,2,3,4\n", ",", "a A_2 b a_2_2", 1),
    ],
)
def test_forms(text: str, delimiter: str, names: str, skip: int) -> None:
    form = found(text)
    assert (form.delimiter, " ".join(form.names), form.skip) == (delimiter, names, skip)


def test_what_is_said_counts() -> None:
    given = Reading(delimiter=";", header=False, names=("x", "y"), skip=1)
    form = found("a,b\n1;2\n", given)
    assert (form.names, form.skip, form.has_header) == (("x", "y"), 1, False)
    assert found("# n\na,b\n# 1,2\n3,4\n", Reading(comment="#")).skip == 2


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("a,é\n".encode(), "utf-8"),
        ("name\ncafé, señor\n".encode("cp1252"), "cp1252"),
        ("имя\nпривет\n".encode("cp1251"), "utf-8"),  # no words of western Europe
        ("łąka\nżółw\n".encode("cp1250"), "utf-8"),
        (b"caf\xc3\xa9 \xff\n", "utf-8"),  # damaged, but UTF-8
        ("a,b\n1,2\n".encode("utf-16-le"), "utf-16-le"),
        ("a,b\n1,2\n".encode("utf-16-be"), "utf-16-be"),
        (b"a\0b\n", "utf-8"),
    ],
)
def test_encodings(data: bytes, encoding: str) -> None:
    assert find_encoding(data, final=True) == encoding


def texts(*values: str) -> pa.Array:
    return pa.array([value.encode() for value in values], pa.binary())


def test_decimal_commas() -> None:
    assert decimal_commas({"a": texts("1,5", "2"), "b": texts("1,234"), "c": texts("x,5")}) == [
        "a",
        "b",
    ]
    assert decimal_commas({"a": texts("1,234", "5,678")}) == []  # thousands?
    given = texts("1,5", "-1.234.567,890", "+0,10", "1,2,3", "v1,5", "12")
    assert convert(given, ",", None).to_pylist() == [
        b"1.5", b"-1234567.890", b"+0.10", b"1,2,3", b"v1,5", b"12",
    ]  # fmt: skip


def test_dates() -> None:
    columns = {
        "day": texts("31/12/2020", "1/2/2020"),
        "doubt": texts("1/2/2020"),
        "month": texts("1-31-2020"),
        "point": texts("1.2.2020 10:30"),
        "both": texts("31/1/2020", "1/31/2020"),
        "no": texts("31/12/2020", "never"),
    }
    assert date_formats(columns) == {
        "day": "%d/%m/%Y",
        "doubt": "%d/%m/%Y",  # as its neighbour
        "month": "%m-%d-%Y",
        "point": "%d.%m.%Y %H:%M",
    }
    assert date_formats({"doubt": texts("1/2/2020")}) == {}
    moved = convert(texts("5.1.99 7:05:09.5", "x"), None, "%d.%m.%y %H:%M:%S.%f")
    assert moved.to_pylist() == [b"1999-01-05 07:05:09.5", b"x"]


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        (Reading(delimiter="ab"), "one ASCII character"),
        (Reading(delimiter='"'), "both"),
        (Reading(encoding="klingon"), "unknown encoding"),
        (Reading(encoding="rot13"), "encoding"),
        (Reading(decimal="!"), "choose , or ."),
        (Reading(date_format="%d/%m"), "day, month and year"),
        (Reading(date_format={"a": "%q"}), "not known"),
        (Reading(skip=-1), "number of lines"),
        (Reading(comment=""), "the mark"),
        (Reading(format="xml"), "choose csv"),
        (Reading(names=("a\n",)), "line end"),
    ],
    ids=str,
)
def test_refusals(reading: Reading, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        checked(reading)


def test_names() -> None:
    assert unique_names(["a", "a", "", "", "a_2"]) == ("a", "a_2", "", "", "a_2_2")
