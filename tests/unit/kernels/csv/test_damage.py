"""Damage inserted at random costs the damaged records, and the sound ones around them survive."""

import csv
import io
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from caudal.kernels.csv import Batch, TextColumns, cut_batches, read_batch

Row = tuple[str | None, ...]
File = tuple[list[list[str]], dict[int, str]]  # its lines, and what is wrong with some of them

LINE_DAMAGE = ["too few fields", "too many fields", "stray quote"]


def read(rows: Sequence[Sequence[str]]) -> tuple[Batch, TextColumns]:
    text = "".join(",".join(row) + "\n" for row in [["a", "b", "c"], *rows])
    [batch] = cut_batches(io.BytesIO(text.encode()), "f.csv")
    return batch, read_batch(batch, ["a", "b", "c"])


def rows_of(found: TextColumns) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in found.table.columns), strict=True))


WORDS = st.sampled_from(["a", "bc", "", "ñ", "d e"])
INNOCENT = st.one_of(
    WORDS, st.sampled_from(['6" ruler', '"a, b"', '"b ""c"" d"', '"word"', '"w, ""x"""'])
)


def plain(row: Sequence[str]) -> Row:
    """The fields of one sound line, as the csv module reads them."""
    return tuple(field or None for field in next(csv.reader([",".join(row)])))


@st.composite
def damaged_files(draw: st.DrawFn, innocent: st.SearchStrategy[str], kinds: Sequence[str]) -> File:
    """Lines of three fields, some damaged; and the kind of damage by place."""
    rows = draw(
        st.lists(st.lists(innocent, min_size=3, max_size=3).filter(any), min_size=1, max_size=12)
    )
    damage = {}
    for place, row in enumerate(rows):
        kind = draw(st.sampled_from([*kinds, "", "", ""]))
        if kind == "too few fields":
            row.pop()
            row[0] = row[0] or "x"
        elif kind == "too many fields":
            row.append(draw(innocent))
        elif kind == "stray quote":
            row.insert(draw(st.integers(0, 2)), '"a"b')
        elif kind == "unclosed quote":
            row[draw(st.integers(0, 2))] = '"word'
        if kind:
            damage[place] = kind
    return rows, damage


@settings(deadline=None, max_examples=100)
@given(damaged_files(INNOCENT, LINE_DAMAGE))
def test_damage_within_a_line_costs_that_line_and_no_other(file: File) -> None:
    rows, damage = file
    whole = [plain(row) for place, row in enumerate(rows) if place not in damage]
    _, found = read(rows)
    assert rows_of(found) == whole
    assert tuple(found.damaged) == tuple((2 + place, damage[place]) for place in sorted(damage))


@settings(deadline=None, max_examples=200)
@given(damaged_files(INNOCENT, [*LINE_DAMAGE, "unclosed quote"]))
def test_an_unclosed_quote_costs_its_line_and_no_other(file: File) -> None:
    """True whenever the next quote of the file does not stand before a comma or a line's end:
    it cannot be taken for the closing one. The reason is a stray quote if it is on that line."""
    rows, damage = file
    whole = [plain(row) for place, row in enumerate(rows) if place not in damage]
    _, found = read(rows)
    assert rows_of(found) == whole
    assert [line for line, _ in found.damaged] == [2 + place for place in sorted(damage)]
    for line, reason in found.damaged:
        kind = damage[line - 2]
        assert reason == kind or (kind, reason) == ("unclosed quote", "stray quote")


@settings(deadline=None, max_examples=200)
@given(damaged_files(st.one_of(INNOCENT, st.just('6"'), st.just('", x"')), ["unclosed quote"]))
def test_a_sound_line_is_lost_only_inside_a_record_of_the_right_width(file: File) -> None:
    """Whatever quotes follow an unclosed one: each undamaged line is a record of its own, or
    text inside a record of three fields that an unclosed quote above it opened. It is never
    reported, nor part of what is reported."""
    rows, damage = file
    batch, found = read(rows)
    records_at = dict(zip(batch.lines(found.starts).tolist(), rows_of(found), strict=True))
    swallowed: set[int] = set()
    for line, text in records_at.items():
        breaks = sum((field or "").count("\n") for field in text)
        swallowed |= set(range(line + 1, line + 1 + breaks))
        assert not breaks or line - 2 in damage
    for place, row in enumerate(rows):
        if place not in damage and place + 2 not in swallowed:
            assert records_at[place + 2] == plain(row)
    assert {line for line, _ in found.damaged} <= {2 + place for place in damage}


def test_one_stray_quote_in_many_rows_costs_one_row() -> None:
    rows = [[str(n), f'"title, {n}"', f"{n % 50 / 10}"] for n in range(200_000)]
    rows[5][1] = '"title, 5'
    _, found = read(rows)
    assert tuple(found.damaged) == ((7, "unclosed quote"),)
    assert found.table["a"].to_pylist() == [str(n) for n in range(200_000) if n != 5]
