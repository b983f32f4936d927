"""A stream whose rows come slowly is not held back for a sample, if its header is a usual one."""

from collections.abc import Iterator

import pytest

from caudal.files.inputs import canonical_stream
from caudal.model import Reading


def slowly(first: bytes, asked: list[bool]) -> Iterator[bytes]:
    yield first
    asked.append(True)
    yield b"2,b\n"


@pytest.mark.parametrize("header", [b"id,name\n", b'"Id",review/text\r\n', b"a b,c-d,e_f\n"])
def test_a_usual_header_is_enough(header: bytes) -> None:
    asked: list[bool] = []
    stream, line = canonical_stream(slowly(header + b"1,a\n", asked), Reading(), "s")
    assert (asked, line) == ([], 1)
    buffer = bytearray(100)
    count = stream.readinto(buffer)
    assert bytes(buffer[:count]) == header + b"1,a\n"


@pytest.mark.parametrize(
    "header",
    [b"id;name\n", b"id,id\n", b"1,2\n", b"id,name,\n", b"id\n", b"na\xefve,b\n", b"id,na"],
)
def test_a_doubtful_one_is_not(header: bytes) -> None:
    asked: list[bool] = []
    canonical_stream(slowly(header, asked), Reading(), "s")
    assert asked


def test_nor_is_any_where_something_is_said_of_it() -> None:
    asked: list[bool] = []
    canonical_stream(slowly(b"id,name\n", asked), Reading(decimal=","), "s")
    assert asked
