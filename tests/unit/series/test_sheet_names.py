"""Which part of an archive a sheet is."""

import io
import zipfile

import pytest

from caudal.errors import WorkbookError
from caudal.files.excel import sheet_names
from caudal.files.excel.parts import open_archive
from caudal.files.excel.sheet_names import find_sheet

SHEETS = '<sheet name="Other" r:id="r1"/><sheet name="A &amp; B" sheetId="7" r:id="r2"/>'
RELATIONS = (
    '<Relationship Id="r2" Target="worksheets/b.xml"/>'
    '<Relationship Id="r1" Target="worksheets/a.xml"/>'
)


def find(
    sheets: str = SHEETS, relations: str = RELATIONS, head: str = "", part: str = "b.xml"
) -> str:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as packed:
        packed.writestr(
            "xl/workbook.xml",
            f'{head}<workbook xmlns:r="r" xmlns:x="x"><sheets>{sheets}</sheets></workbook>',
        )
        packed.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{relations}</Relationships>")
        for path in ("a.xml", part):
            packed.writestr(f"xl/worksheets/{path}", "<worksheet/>")
    with open_archive(body.getvalue(), "a.xlsx") as archive:
        return find_sheet(archive, "A & B").filename


@pytest.mark.parametrize(
    ("sheets", "relations"),
    [
        (SHEETS, RELATIONS),
        (SHEETS.replace("<sheet", "<x:sheet"), RELATIONS.replace("<R", "\n<R")),
        (SHEETS, RELATIONS.replace("worksheets/", "/xl/worksheets/")),
        (SHEETS, RELATIONS.replace("worksheets/b", "Worksheets/B")),
        (SHEETS.replace("r:id", "id"), RELATIONS),
    ],
)
def test_the_part_of_a_sheet(sheets: str, relations: str) -> None:
    assert find(sheets, relations) == "xl/worksheets/b.xml"


@pytest.mark.parametrize(
    ("sheets", "relations"),
    [
        ("", RELATIONS),
        (SHEETS, ""),
        (SHEETS + SHEETS, RELATIONS),
        (SHEETS, RELATIONS + RELATIONS),
        (SHEETS, RELATIONS.replace("b.xml", "c.xml")),
        (SHEETS.replace("r:id", "r:is"), RELATIONS),
        (SHEETS, "<Relationship"),
    ],
)
def test_what_is_not_told_or_told_twice(sheets: str, relations: str) -> None:
    with pytest.raises(WorkbookError):
        find(sheets, relations)


def test_two_parts_of_one_name() -> None:
    with pytest.raises(WorkbookError, match=r"2 entries for part 'xl/worksheets/a\.xml'"):
        find(relations='<Relationship Id="r2" Target="worksheets/a.xml"/>', part="A.xml")


def test_entities_are_not_expanded() -> None:
    with pytest.raises(WorkbookError, match="document type"):
        find(head='<!DOCTYPE a [<!ENTITY b "c">]>')


def test_the_lists_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheet_names, "_MOST_BYTES", 1000)
    find()
    with pytest.raises(WorkbookError, match="unpacks to more"):
        find(SHEETS + " " * 1000)
    with pytest.raises(WorkbookError, match="unpacks to more"):
        find(SHEETS, RELATIONS + " " * 1000)
