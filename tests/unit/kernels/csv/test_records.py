"""Which records a file holds: against Python's csv module, and against the rules written slowly."""

import csv
import io
import re
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from caudal.kernels.csv import cut_batches, read_batch, records

Row = tuple[str | None, ...]
Damage = tuple[int, str]

TEXTS = st.one_of(
    st.sampled_from(
        ["", "a", '6" ruler', '"', '""', "a,b", "x\ny", "x\r\ny", "\n", "\r", "ñ", "🎈"]
    ),
    st.text(alphabet=st.characters(codec="utf-8"), max_size=12),
)


def read(data: bytes, width: int) -> tuple[list[Row], list[Damage]]:
    """The records of a file whose columns are called a, b, c ..., and the damaged lines."""
    names = [chr(ord("a") + place) for place in range(width)]
    header = ",".join(names).encode() + b"\n"
    [batch] = cut_batches(io.BytesIO(header + data), "f.csv")
    found = read_batch(batch, names)
    columns = [column.to_pylist() for column in found.table.columns]
    return list(zip(*columns, strict=True)), list(found.damaged)


def written(field: str, *, quoted: bool) -> str:
    """A field as a CSV writer may write it; without quotes where rule 1 allows it."""
    if quoted or field.startswith('"') or any(mark in field for mark in ",\r\n"):
        return '"' + field.replace('"', '""') + '"'
    return field


@st.composite
def files(draw: st.DrawFn) -> tuple[int, str]:
    """A sound file: its width and its text, in one of the many ways to write it."""
    width = draw(st.integers(1, 4))
    text = ""
    for row in draw(st.lists(st.lists(TEXTS, min_size=width, max_size=width), max_size=8)):
        text += ",".join(written(field, quoted=draw(st.booleans())) for field in row)
        text += draw(st.sampled_from(["\n", "\r\n", "\n\n", "\r\n\r\n"]))
    return width, text.rstrip("\r\n") if draw(st.booleans()) else text


@settings(deadline=None, max_examples=200)
@given(files())
@example((2, '6" ruler,12"\n"a ""b""",""\n'))
@example((2, '"x\r\ny",z\r\n\r\n,\r\n'))
@example((1, '""'))
def test_sound_files_hold_what_the_csv_module_finds(file: tuple[int, str]) -> None:
    width, text = file
    expected = [
        tuple(f or None for f in row) for row in csv.reader(io.StringIO(text, newline="")) if row
    ]
    assert read(text.encode(), width) == (expected, [])


@settings(deadline=None, max_examples=100)
@given(files(), st.data())
def test_a_cut_file_keeps_every_record_that_ends_before_the_cut(
    file: tuple[int, str], data: st.DataObject
) -> None:
    width, text = file
    rows, _ = read(text.encode(), width)
    cut = data.draw(st.integers(0, len(text)))
    complete = [row for row in csv.reader(io.StringIO(text[:cut], newline="")) if row][:-1]
    kept, _ = read(text[:cut].encode(), width)
    assert kept[: len(complete)] == rows[: len(complete)]


@pytest.mark.parametrize(
    ("text", "rows", "damaged"),
    [
        pytest.param("1,2\n3\n4,5\n", ["1|2", "4|5"], [(3, "too few fields")], id="short"),
        pytest.param("1,2\n3,4,5\n6,7\n", ["1|2", "6|7"], [(3, "too many fields")], id="long"),
        pytest.param('1,2\n"3"4,5\n6,7\n', ["1|2", "6|7"], [(3, "stray quote")], id="stray"),
        pytest.param('"3,4\n5,6\n', ["5|6"], [(2, "unclosed quote")], id="never closed"),
        pytest.param(
            '1,"2\n3,4\n5,"x"\n',
            ["3|4", "5|x"],
            [(2, "unclosed quote")],
            id="closed by another field",
        ),
        pytest.param('1,"2\n3,4\n5,"\n', ["1|2\n3,4\n5,"], [], id="swallowed into the right width"),
        pytest.param(
            '"1\n3,4\n5",6,7\n',
            ["3|4"],
            [(2, "unclosed quote"), (4, "too many fields")],
            id="swallowed into the wrong width",
        ),
        pytest.param(
            '"1\n2",3,"4\n5"\n6,7\n', ["6|7"], [(2, "too many fields")], id="long, of several lines"
        ),
        pytest.param(
            '1,"\nq\n3,4\n",5,6\n7,8\n',
            ["3|4", "7|8"],
            [(2, "unclosed quote"), (3, "too few fields"), (5, "unclosed quote")],
            id="damage below an unclosed quote",
        ),
        pytest.param(
            '"1\n2","3"4,5\n6,7\n',
            ["6|7"],
            [(2, "unclosed quote"), (3, "stray quote")],
            id="stray quote on a later line",
        ),
        pytest.param('1,2\n"', ["1|2"], [(3, "unclosed quote")], id="cut after a quote"),
        pytest.param('1,"2"\r', ["1|2"], [], id="cut inside a line end"),
        pytest.param("\r3,4\n", ["\r3|4"], [], id="a lone return is text"),
        pytest.param(' "1",2\n', [' "1"|2'], [], id="a quote after a space is text"),
    ],
)
def test_damage_costs_one_record(text: str, rows: list[str], damaged: list[Damage]) -> None:
    assert read(text.encode(), 2) == ([tuple(row.split("|")) for row in rows], damaged)


QUOTED = re.compile(rb'"(?:[^"]|"")*+"')
PLAIN = re.compile(rb"[^,\n]*")
BLANK = re.compile(rb"\r?\n|\r\Z")


class Rules:
    """Rules 1 to 5, written without regard to speed."""

    def __init__(self, data: bytes, width: int, max_record_bytes: int) -> None:
        self.data, self.width, self.limit = data, width, max_record_bytes

    def record(self, start: int) -> tuple[str, int, list[bytes]]:
        """The reason why the record at `start` is not sound (or ""), its end, its fields."""
        fields: list[bytes] = []
        at = start
        while True:
            quoted = self.data.startswith(b'"', at)
            found = (
                QUOTED.match(self.data, at, start + self.limit)
                if quoted
                else PLAIN.match(self.data, at)
            )
            if found is None:
                return "unclosed quote", at, []
            field, at = found[0], found.end()
            if quoted:
                field = field[1:-1].replace(b'""', b'"')
                at += bool(re.compile(rb"\r(?=\n|\Z)").match(self.data, at))
                if self.data[at : at + 1] not in (b"", b",", b"\n"):
                    return self.torn(start, at, "stray quote"), at, []
            elif self.data[at : at + 1] != b"," and field.endswith(b"\r"):
                field = field[:-1]
            if at > start + self.limit:
                return self.torn(start, at, "longer than 8 MiB"), at, []
            fields.append(field)
            if self.data[at : at + 1] != b",":
                break
            at += 1
        if len(fields) != self.width:
            return ("too few fields" if len(fields) < self.width else "too many fields"), at, []
        return "", at, fields

    def torn(self, start: int, at: int, reason: str) -> str:
        return "unclosed quote" if b"\n" in self.data[start:at] else reason

    def verdict(self, start: int) -> tuple[str, int, list[bytes]]:
        """As `record`, with rule 5; the end is where the next line begins."""
        reason, end, fields = self.record(start)
        costs_lines = reason in ("", "too few fields", "too many fields")
        if costs_lines and reason:
            later = [m.end() for m in re.compile(b"\n").finditer(self.data, start, end)]
            if any(not BLANK.match(self.data, at) and not self.record(at)[0] for at in later):
                reason, costs_lines = "unclosed quote", False
        newline = self.data.find(b"\n", end if costs_lines else start)
        return reason, len(self.data) if newline < 0 else newline + 1, fields

    def all(self) -> tuple[list[Row], list[Damage]]:
        rows: list[Row] = []
        damaged: list[Damage] = []
        at = 0
        while at < len(self.data):
            if blank := BLANK.match(self.data, at):
                at = blank.end()
                continue
            line = 2 + self.data.count(b"\n", 0, at)
            reason, at, fields = self.verdict(at)
            if reason:
                damaged.append((line, reason))
            else:
                rows.append(tuple(f.decode("utf-8", "replace") or None for f in fields))
        return rows, damaged


MARKS = st.sampled_from([b'"', b'""', b",", b"\n", b"\r", b"\r\n", b"x", b"x,y\n", b'","', b'"\n'])


@settings(deadline=None, max_examples=600)
@given(
    data=st.one_of(st.lists(MARKS, max_size=30).map(b"".join), st.binary(max_size=60)),
    width=st.integers(1, 4),
    max_record_bytes=st.sampled_from([7, 9, 20, records.MAX_RECORD_BYTES]),
)
@example(data=b'"\n","a"b', width=2, max_record_bytes=100)
@example(data=b'"aaa\nb",cccccccccccccc\n', width=2, max_record_bytes=9)
def test_any_bytes_are_read_by_the_rules(data: bytes, width: int, max_record_bytes: int) -> None:
    with patch.object(records, "MAX_RECORD_BYTES", max_record_bytes):
        assert read(data, width) == Rules(data, width, max_record_bytes).all()


@pytest.mark.parametrize("size", [63, 64, 65, 127, 128, 129])
@pytest.mark.parametrize("end", ["", "\n", "\r\n", ",", '"'])
def test_the_last_record_is_found_wherever_a_block_of_64_bytes_ends(size: int, end: str) -> None:
    data = ("a,b\n" * size)[: size - len(end)].encode() + end.encode()
    assert len(data) == size
    assert read(data, 2) == Rules(data, 2, records.MAX_RECORD_BYTES).all()
