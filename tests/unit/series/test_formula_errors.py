"""The cells with the error of a formula, found in the XML of a sheet however it is cut."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from string import ascii_uppercase
from typing import NoReturn
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caudal.errors import WorkbookError
from caudal.files.excel import formula_errors
from caudal.files.excel.formula_errors import error_cells

Found = list[tuple[str, str]]


def sheet(rows: str) -> str:
    head = "<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\n"
    spaces = 'xmlns="m" xmlns:x="m"'
    return f"{head}<worksheet {spaces}><cols/><sheetData>{rows}</sheetData><legend/></worksheet>"


def cut(text: str, size: int) -> Callable[[], Iterator[bytes]]:
    data = text.encode()
    return lambda: (data[at : at + size] for at in range(0, len(data), size))


def find(text: str, size: int = 1 << 20) -> Found:
    return [(str(cell.place), cell.text) for cell in error_cells(cut(text, size), "a sheet")]


@pytest.fixture
def no_xml(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> NoReturn:
        raise AssertionError("this sheet need not be read cell by cell")

    monkeypatch.setattr(formula_errors, "parse", fail)


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("", []),
        ('<c r="A1"><v>1</v></c>', []),
        ('<c r="A1" t="e"><v>#N/A</v></c>', [("A1", "#N/A")]),
        ('<c r="AB7" s="67" t="e"><v>#DIV/0!</v></c>', [("AB7", "#DIV/0!")]),
        ('<c r="B1" t="e" s="1" cm="1"><f>A1/0</f><v>#NAME?</v></c>', [("B1", "#NAME?")]),
        ('<c r="B1" t="e"><f t="shared" si="0"/><v>#REF!</v></c>', [("B1", "#REF!")]),
        ('<c r="A1" t="inlineStr"><is><t>t="e" t=\'e\'</t></is></c>', []),
        ('<c r="A1" t="str"><f>IF(B1="t", t="e", 1/&gt;2)</f><v>t="e"</v></c>', []),
        ('<c r="A1"><f t="e">1</f><v>1</v></c>', []),
    ],
)
@pytest.mark.usefixtures("no_xml")
def test_the_usual_ways_need_no_xml(cells: str, expected: Found, size: int) -> None:
    assert find(sheet(f'<row r="1">{cells}</row>'), size) == expected


@pytest.mark.usefixtures("no_xml")
def test_what_follows_the_cells_is_not_looked_at() -> None:
    assert find(sheet('</sheetData><c r="A1" t="e"><v>#N/A</v></c><!-- --><sheetData>')) == []


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("<c r='A1' t='e'><v>#N/A</v></c>", [("A1", "#N/A")]),
        ('<c t="e" r="C1"><v>#N/A</v></c>', [("C1", "#N/A")]),
        ('<c\n\tt = "e"\n r="C1" ><v>#N/A</v></c>', [("C1", "#N/A")]),
        ('<c r="c1" t="e"><v>#N/A</v></c>', [("C1", "#N/A")]),
        ('<x:c r="C1" t="e"><x:v>#N/A</x:v></x:c>', [("C1", "#N/A")]),
        ('<c><v>1</v></c><c t="e"><v>#N/A</v></c>', [("B1", "#N/A")]),
        ('<c r="D1"/><c t="e"><v>#N/A</v></c>', [("E1", "#N/A")]),
        ('<c r="A1" t="e"><v>#N&#47;A</v></c>', [("A1", "#N/A")]),
        ('<c r="A1" s="a>b" t="e"><v xml:space="preserve">#N/A</v></c>', [("A1", "#N/A")]),
        ('<c r="A1" t="e"/><c r="B1" t="e"><v></v></c>', []),
        ('<!-- <c r="A1" t="e"><v>#N/A</v></c> -->', []),
        ('<?say <c r="A1" t="e"><v>#N/A</v></c> ?>', []),
        ('<c r="A1"><f><![CDATA[<c r="B1" t="e"><v>#N/A</v></c>]]></f></c>', []),
    ],
)
def test_other_ways_are_read_cell_by_cell(cells: str, expected: Found, size: int) -> None:
    assert find(sheet(f"<row>{cells}</row>"), size) == expected


@pytest.mark.parametrize("cell", ["<c {}/>", "<c {} ><v>1</v></c>", "<c><v>{}</v></c>"])
def test_a_hostile_sheet_is_not_slow(cell: str) -> None:
    many = 't="e" ' * 150_000
    with suppress(WorkbookError):  # of attributes that come twice
        assert find(sheet(f'<row>{cell.format(f"""r="A1" {many}""")}</row>')) == []


def test_a_long_text_is_cut() -> None:
    text = "#" * 100_000
    assert find(sheet(f'<row><c t="e"><v>{text}</v></c></row>'), 1000) == [("A1", "#" * 40)]


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE a [<!ENTITY b "c">]>' + sheet("").partition("\n")[2],
        sheet('<row><c t="e"></row>'),
        sheet('<row><c r="XFE1" t="e"/></row>'),
        sheet('<row r="0"><c t="e"/></row>'),
    ],
)
def test_what_cannot_be_understood_is_said(text: str) -> None:
    with pytest.raises(WorkbookError, match="a sheet"):
        find(text)


@pytest.mark.parametrize("attributes", ['r="A{}" t="e"', "t='e'"])
def test_many_of_them_take_no_memory(attributes: str) -> None:
    rows = 20_000

    def pieces() -> Iterator[bytes]:
        yield b"<worksheet><sheetData>"
        for first in range(1, rows, 1000):
            cells = (attributes.format(number) for number in range(first, first + 1000))
            yield "".join(f"<row><c {one}><v>#N/A</v></c></row>" for one in cells).encode()
        yield b"</sheetData></worksheet>"

    tracemalloc.start()
    try:
        count = sum(1 for _ in error_cells(pieces, "a sheet"))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert count == rows


COLUMNS = ["".join(name) for many in (1, 2) for name in product(ascii_uppercase, repeat=many)]
USUAL_TEXTS = st.sampled_from(["#N/A", "#DIV/0!", "#NAME?", "#REF!"])
TEXTS = st.sampled_from(["#N/A", "#DIV/0!", "#NAME?", 't="e"', "&lt;c t='e'&gt;", "12.5", ""])
FORMULAS = st.sampled_from(["", "<{0}f>A1/0</{0}f>", '<{0}f t="shared" si="0"/>'])
BETWEEN = st.sampled_from(["", "", "\n", '<!-- <c r="A1" t="e"><v>#N/A</v></c> -->'])


@st.composite
def attributes(draw: st.DrawFn, row: int, usual: bool) -> str:
    name = f'r="{draw(st.sampled_from(["A", "B", "Z", "AA", "AZ"]))}{row}"'
    kind = draw(st.sampled_from(['t="e"', 't="e"', 't="str"', 'cm="e"']))
    if usual:
        return f'{name} s="7" {kind}'
    some = draw(st.permutations([name, 's="7"', kind]))[: draw(st.integers(1, 3))]
    quoted = [one.replace('"', draw(st.sampled_from("\"'"))) for one in some]
    return draw(st.sampled_from([" ", "\n"])).join(
        one.replace("=", draw(st.sampled_from(["=", " =\n"]))) for one in quoted
    )


@st.composite
def cells(draw: st.DrawFn, row: int, usual: bool) -> str:
    prefix = "" if usual else draw(st.sampled_from(["", "x:"]))
    between = "" if usual else draw(BETWEEN)
    formula = draw(FORMULAS).format(prefix)
    value = f"<{prefix}v>{draw(USUAL_TEXTS if usual else TEXTS)}</{prefix}v>"
    return f"<{prefix}c {draw(attributes(row, usual))}>{formula}{between}{value}</{prefix}c>"


@st.composite
def sheets(draw: st.DrawFn) -> str:
    """A sheet that is written in the usual way, or in any."""
    usual, rows, number = draw(st.booleans()), [], 0
    for step in draw(st.lists(st.integers(1, 3), max_size=5)):
        number += step
        name = "" if step == 1 and not usual else f' r="{number}"'
        body = "".join(draw(st.lists(cells(number, usual), max_size=5)))
        rows.append(f"<row{name}>{body}</row>")
    return sheet("".join(rows))


def slow_reading(text: str) -> dict[str, str]:
    """The same by the whole tree, and by the definition of places."""
    found, number = {}, 0
    for row in ElementTree.fromstring(text).iterfind("{m}sheetData/{m}row"):
        number, column = int(row.get("r") or number + 1), 0
        for cell in row.iterfind("{m}c"):
            name = cell.get("r")
            column = COLUMNS.index(name.rstrip("0123456789")) + 1 if name else column + 1
            value = cell.findtext("{m}v")
            if cell.get("t") == "e" and value:
                found[f"{COLUMNS[column - 1]}{number}"] = value
    return found


@given(sheets(), st.integers(1, 200))
def test_any_sheet_cut_anywhere_is_read_as_a_whole_tree_is(text: str, size: int) -> None:
    assert dict(find(text, size)) == slow_reading(text)
