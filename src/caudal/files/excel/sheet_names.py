"""Find the part of an xlsx archive that holds a sheet, by the name of the sheet.

The workbook lists its sheets with an identifier each. Its relations map each identifier to a part.
"""

from collections.abc import Iterator
from typing import TypeVar
from zipfile import ZipFile, ZipInfo

from caudal.errors import WorkbookError
from caudal.files.excel.parts import Handlers, parse, read_pieces

_One = TypeVar("_One")

_WORKBOOK = "xl/workbook.xml"
_RELATIONS = "xl/_rels/workbook.xml.rels"
_MOST_BYTES = 1 << 24  # limit for each of the two


def find_sheet(archive: ZipFile, sheet: str) -> ZipInfo:
    """Return the part that holds a sheet. Raise WorkbookError if it is not named exactly once."""
    relations = [
        _plain(attributes).get("id", "")
        for attributes in _elements(archive, _WORKBOOK, "sheet")
        if attributes.get("name") == sheet
    ]
    relation = _only(relations, f"sheet {sheet!r}")
    targets = [
        attributes.get("Target", "")
        for attributes in _elements(archive, _RELATIONS, "Relationship")
        if attributes.get("Id") == relation
    ]
    target = _only(targets, f"relation {relation!r}")
    return _entry(archive, _path(target))


def sheet_paths(archive: ZipFile) -> frozenset[str]:
    """Return the paths of the parts that are sheets, in lower case; none if they are not named."""
    try:
        relations = {
            _plain(attributes).get("id", "")
            for attributes in _elements(archive, _WORKBOOK, "sheet")
        }
        return frozenset(
            _path(attributes.get("Target", "")).lower()
            for attributes in _elements(archive, _RELATIONS, "Relationship")
            if attributes.get("Id") in relations
        )
    except WorkbookError:
        return frozenset()


def _path(target: str) -> str:
    return target[1:] if target.startswith("/") else f"xl/{target}"


def _elements(archive: ZipFile, path: str, wanted: str) -> Iterator[dict[str, str]]:
    """Yield the attributes of each element of one kind in a part."""
    entry = _entry(archive, path)
    if entry.file_size > _MOST_BYTES:
        raise WorkbookError(f"{path} unpacks to more than {_MOST_BYTES >> 20} MiB")
    found: list[dict[str, str]] = []

    def start(kind: str, attributes: dict[str, str]) -> None:
        if kind == wanted:
            found.append(attributes)

    for _ in parse(read_pieces(archive, entry), path, Handlers(start)):
        yield from found
        found.clear()


def _entry(archive: ZipFile, path: str) -> ZipInfo:
    """Return the entry of a path. Ignores case, like the reader."""
    entries = [one for one in archive.infolist() if one.filename.lower() == path.lower()]
    return _only(entries, f"part {path!r}")


def _plain(attributes: dict[str, str]) -> dict[str, str]:
    """Return the attributes by their names without prefix."""
    return {name.rpartition(":")[2]: value for name, value in attributes.items()}


def _only(found: list[_One], what: str) -> _One:
    if len(found) != 1:
        raise WorkbookError(f"the archive has {len(found)} entries for {what}, not one")
    return found[0]
