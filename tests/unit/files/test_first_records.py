"""The first records of a text are those that the kernel finds one by one, in every dialect."""

import random
from collections.abc import Iterator

import numpy as np
import pytest

from caudal.files.first_records import first_records, swap_table
from caudal.kernels.csv import records as kernel
from caudal.kernels.csv.header import read_fields

_PIECES = ("a", "bc", "é", ",", ";", "\t", "|", '"', '""', "'", "\n", "\r\n", "\r", " ", "1", "#")


def one_by_one(text: bytes, delimiter: str, quote: str, *, final: bool) -> Iterator[object]:
    """Call the kernel for each record."""
    table = swap_table(delimiter, quote)
    data = text.translate(table)
    source = kernel.RecordSource(np.frombuffer(data, np.uint8), final, kernel.MAX_RECORD_BYTES)
    place = 0
    for _ in range(200):
        place += len(data[place:]) - len(data[place:].lstrip(b"\r\n"))
        if place >= len(data):
            return
        verdict, after, fields = read_fields(source, place)
        if verdict == kernel.UNFINISHED:
            return
        if verdict not in (kernel.TOO_FEW, kernel.TOO_MANY):
            after, fields = data.find(b"\n", place) + 1 or len(data), []
        told = (one.translate(table).decode("utf-8", "replace").strip() for one in fields)
        yield tuple(told), after
        place = after


def given(text: bytes, delimiter: str, quote: str, *, final: bool) -> list[object]:
    found = first_records(text, delimiter, quote, final=final)
    return [(one.fields, one.after) for one in found]


def texts() -> Iterator[bytes]:
    dice = random.Random(15)
    for _ in range(80):
        yield "".join(dice.choices(_PIECES, k=dice.randrange(1, 60))).encode()
    for _ in range(8):  # tables of one width, with some damage
        rows = [
            ",".join(dice.choice(["x", '"y,z"', '"say ""hi"""', '"two\nlines"', ""]) for _ in "abc")
            for _ in range(dice.randrange(1, 230))
        ]
        rows[dice.randrange(len(rows))] += dice.choice(["", ",more", '"stray', "\r"])
        yield "\n".join(rows).encode()


@pytest.mark.long
@pytest.mark.parametrize("quote", ['"', "'", ""])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_records_are_those_of_the_kernel(delimiter: str, quote: str) -> None:
    for text in texts():
        for final in (True, False):
            expected = list(one_by_one(text, delimiter, quote, final=final))
            assert given(text, delimiter, quote, final=final) == expected, (text, final)


def test_a_record_that_is_too_long_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "MAX_RECORD_BYTES", 20)
    text = b"a,b\n" + b"x" * 30 + b',"y"\n' + b"z" * 30 + b"\n1,2\n"
    assert given(text, ",", '"', final=True) == list(one_by_one(text, ",", '"', final=True))
