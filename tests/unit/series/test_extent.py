"""How far the sheets of a workbook reach, seen before anything is laid out in memory."""

import io
import re
import zipfile

import pytest

from caudal.errors import WorkbookError
from caudal.files.excel import extent, parts
from caudal.files.excel.extent import require_bounded

SHEET = "xl/worksheets/sheet1.xml"


def workbook(cells: str, head: str = "", part: str = SHEET) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/workbook.xml", "<workbook/>")
        packed.writestr(part, f"{head}<worksheet><sheetData>{cells}</sheetData></worksheet>")
    return body.getvalue()


def cell(reference: str) -> str:
    return f'<row r="1"><c r="{reference}"><v>1</v></c></row>'


@pytest.mark.parametrize(
    "cells",
    [
        "",
        cell("A1"),
        cell("CZ99999"),
        cell("XFD1"),
        cell("A1048576"),
        cell("a1"),
        cell("S1048576"),
        cell("S999999"),
        cell("ZZ9999"),
        cell("CZ1") + cell("T180000"),
        cell("XFD1220"),
        '<row r="1048576"><c r="XFD1048576" s="1"/></row>',
        '<row><c><v>1</v></c></row><row r="1048576"><c s="3"><v>1</v></c></row>',
        "<row><c t='inlineStr' r='B7'><is><t>a &lt;c r=\"XFE1\"> b</t></is></c></row>",
        cell("XFD1") + '</sheetData><xdr:row>9</xdr:row><c r="?"/><sheetData>',
        '<!-- <c r="XFE1"/> --><row r="7" spans="1:2"><c s="2" r="B7"><v>1</v></c></row>',
    ],
)
def test_what_is_near_enough(cells: str) -> None:
    require_bounded(workbook(cells), "a.xlsx")


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (cell("XFD1048576"), "cell XFD1048576 makes the sheet 1,048,576 rows by 16,384 columns"),
        (cell("XFD1") + cell("A1048576"), "cell A1048576 makes the sheet"),
        (cell("xfd1048576"), "cell XFD1048576 makes"),
        (cell("CZ1") + cell("S999999"), "cell S999999 makes the sheet 999,999 rows by 104 columns"),
        (cell("T1048576"), "delete stray cells"),
        (cell("B99999999999"), "'B99999999999' is not a valid cell"),
        (cell("ZZZZZZZZZ1"), "'ZZZZZZZZZ1' is not a valid cell"),
        (cell("XFE1"), "'XFE1' is not a valid cell"),
        (cell("A1048577"), "'A1048577' is not a valid cell"),
        (cell("A0"), "'A0' is not a valid cell"),
        ('<row r="0"><c><v>1</v></c></row>', "'0' is not a valid row"),
        ('<row r="9999999"><c><v>1</v></c></row>', "'9999999' is not a valid row"),
        ("<row>" + "<c><v>1</v></c>" * 16_385 + "</row>", "'XFE1' is not a valid cell"),
        (
            "<row>" + "<c><v>1</v></c>" * 30 + '</row><row r="1048576"><c><v>1</v></c></row>',
            "A1048576",
        ),
        (
            '<row r="1048576"><c r="A1"><v>1</v></c>' + "<c><v>1</v></c>" * 30 + "</row>",
            "cell T1048576 makes the sheet",
        ),
        ('<x:row r="1"><x:c  t="n"\tr = \'XFD1048576\'><v>1</v></x:c></x:row>', "XFD1048576"),
    ],
)
def test_what_is_too_far_is_told_with_its_cell(cells: str, told: str) -> None:
    with pytest.raises(WorkbookError, match=r"a\.xlsx: xl/worksheets/sheet1\.xml: ") as raised:
        require_bounded(workbook(cells, '<?xml version="1.0"?>'), "a.xlsx")
    assert told in str(raised.value)


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_a_reference_may_lie_across_two_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(parts, "PIECE_BYTES", size)
    cells = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, 30))
    require_bounded(workbook(cells), "a.xlsx")
    with pytest.raises(WorkbookError, match="XFD1048576"):
        require_bounded(workbook(cells + cell("XFD1048576")), "a.xlsx")


def test_a_sheet_is_measured_whatever_its_part_is_called() -> None:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as packed:
        packed.writestr("xl/workbook.xml", '<workbook><sheet name="S" id="r1"/></workbook>')
        relation = '<Relationship Id="r1" Target="worksheets/Sheet1.foo"/>'
        packed.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{relation}</Relationships>")
        packed.writestr("xl/vbaProject.bin", b"<c \x00")
        sheet = f"<worksheet><sheetData>{cell('XFD1048576')}</sheetData></worksheet>"
        packed.writestr("xl/worksheets/sheet1.foo", sheet)
    with pytest.raises(WorkbookError, match="cell XFD1048576 makes"):
        require_bounded(body.getvalue(), "a.xlsx")


def test_the_sheets_may_not_unpack_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extent, "_MOST_BYTES", 10_000)
    require_bounded(workbook(" " * 9_000), "a.xlsx")
    with pytest.raises(WorkbookError, match="unpack to more than"):
        require_bounded(workbook(" " * 10_000), "a.xlsx")


def test_entities_are_not_expanded() -> None:
    head = '<!DOCTYPE a [<!ENTITY b "c">]>'
    with pytest.raises(WorkbookError, match="is not a sheet of a workbook"):
        require_bounded(workbook(cell("XFD1"), head), "a.xlsx")


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_archive_is_no_workbook(damage: str) -> None:
    data = bytearray(workbook(cell("A1") * 100))
    if damage == "cut":
        del data[10:60]
    else:
        at = data.index(SHEET.encode()) + len(SHEET)
        data[at : at + 4] = b"\xff\xff\xff\xff"
    with pytest.raises(WorkbookError, match=re.escape("is not an Excel workbook (")):
        require_bounded(bytes(data), "a.xlsx")


def test_what_is_no_archive_is_left_to_the_reader() -> None:
    require_bounded(b"hello", "a.xlsx")
    require_bounded(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "a.xls")


@pytest.mark.parametrize("part", ["content.xml", "xl/workbook.bin"])
def test_other_kinds_of_workbook_are_refused(part: str) -> None:
    with pytest.raises(WorkbookError, match="save it as xlsx"):
        require_bounded(workbook("", part=part), "a.xlsx")
