"""A text that arrives in parts gives all its records, each once, with their true lines."""

import pytest

from caudal.errors import CaudalError, DataError, UsageError
from caudal.files.text_parts import PartPlace, TextPart, cut_part
from caudal.formats import batch as batch_format
from caudal.formats.batch import BatchHeader

TEXT = b'\xef\xbb\xbfid,name\n1,one\n2,"two\nlines, ""and"" quotes"\n3,three\n4,"four\r\n"\n5,five'
HEADER = TEXT.index(b"\n") + 1


def cut_all(text: bytes, size: int) -> tuple[list[BatchHeader], bytes]:
    """Cut a text as a browser does: parts of `size` bytes, more where that is too little."""
    found: list[BatchHeader] = []
    records, place, wanted = b"", None, size
    while True:
        begin = place.offset if place else 0
        data = (text[:HEADER] if place else b"") + text[begin : begin + wanted]
        part = TextPart("t", len(found), "f.csv", data, begin + wanted >= len(text), place, 0)
        try:
            cut = cut_part(part)
        except UsageError:
            wanted *= 2
            continue
        index, some = batch_format.decode(cut.batch, "a batch")
        found.append(index)
        records += some
        place, wanted = cut.next, size
        if part.last:
            assert place.offset == len(text)
            return found, records


@pytest.mark.parametrize("size", [*range(1, len(TEXT) + 2), 1000])
def test_every_record_comes_once(size: int) -> None:
    found, records = cut_all(TEXT, size)
    assert records == TEXT[HEADER:]
    assert all(one.columns == ("id", "name") and one.source == 0 for one in found)
    assert [one.first_line for one in found] == [
        1 + TEXT[: one.offset].count(b"\n") for one in found
    ]
    assert sum(one.bytes for one in found) == len(TEXT) - HEADER


def test_the_same_part_gives_the_same_batch() -> None:
    part = TextPart("t", 3, "f.csv", b"a,b\n1,2\n3,4\n5", False, PartPlace(90, 7))
    assert cut_part(part) == cut_part(part)
    assert cut_part(part).next == PartPlace(98, 9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"id;name\n1;one\n2;two\n", "semicolons"),
        ("id,name\n1,één\n".encode("utf-16"), "utf-16"),
        (b"PAR1\x00\x00", "not CSV"),
        (b"", "empty"),
    ],
)
def test_what_is_no_plain_csv_is_refused(text: bytes, words: str) -> None:
    with pytest.raises(CaudalError, match=words):
        cut_part(TextPart("t", 0, "f.csv", text, True))


def test_only_a_header() -> None:
    index, records = batch_format.decode(
        cut_part(TextPart("t", 0, "f.csv", b"a,b\n", True)).batch, "a batch"
    )
    assert (index.columns, records) == (("a", "b"), b"")


def test_a_damaged_header_is_no_guess() -> None:
    with pytest.raises((DataError, UsageError)):
        cut_part(TextPart("t", 0, "f.csv", b'"a,b\n1,2\n', False))
