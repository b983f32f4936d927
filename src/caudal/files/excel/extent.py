"""Check the size of the sheets of an xlsx before the reader expands them to full rectangles.

Rules:

1. The reader allocates a sheet from A1 to its furthest cell, so one stray cell takes as much
   memory as all cells between. A sheet that is too large, or a reference that is not a cell, is
   refused with its place.
2. Most sheets name every cell in the usual form, and none far away. A search for anything else is
   enough for them, without parsing the XML. Only a sheet with something else is parsed cell by
   cell.
3. A cell without content takes no memory, wherever it is.
4. Everything is read in pieces, up to a maximum number of bytes, because an archive may unpack to
   any size.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from zipfile import ZipFile, is_zipfile

from caudal.errors import WorkbookError
from caudal.files.excel.parts import PIECE_BYTES, Handlers, open_archive, parse, read_pieces
from caudal.files.excel.places import Place, Places
from caudal.files.excel.sheet_names import sheet_paths

_MOST_CELLS = 20_000_000
_MOST_BYTES = 1 << 30

# Each pattern matches references inside one rectangle of fewer than _MOST_CELLS cells. A sheet
# whose cells all match one pattern is small enough.
_USUAL = (
    rb"[A-C]?[A-Z][1-9][0-9]{0,4}",  # A1 to CZ99999
    rb"[A-S][1-9][0-9]{0,5}",  # A1 to S999999
    rb"[A-Z]{1,2}[1-9][0-9]{0,3}",  # A1 to ZZ9999
)
_UNUSUAL = [re.compile(rb'<c(?! r="' + usual + rb'"|[^\s/>])') for usual in _USUAL]
_PREFIXED = re.compile(rb":c[\s/>]")
_OTHER_KINDS = ("content.xml", "xl/workbook.bin")  # ods, xlsb


def require_bounded(data: bytes, name: str) -> None:
    """Raise WorkbookError for an archive whose sheets are too large for the reader.

    Other files are left to the reader: the xls format itself limits the number of cells.
    """
    if not is_zipfile(BytesIO(data)):
        return
    with open_archive(data, name) as archive:
        _check(archive, name)


def _check(archive: ZipFile, name: str) -> None:
    if any(path.lower() in _OTHER_KINDS for path in archive.namelist()):
        raise WorkbookError(f"{name} is another kind of workbook: save it as xlsx")
    named = sheet_paths(archive)  # sheets of any name, in addition to all .xml files
    paths = ((entry, entry.filename.lower()) for entry in archive.infolist())
    sheets = [entry for entry, path in paths if path.endswith(".xml") or path in named]
    # The stated size of an entry can be trusted: only that many bytes are read, and their checksum
    # must match.
    if sum(entry.file_size for entry in sheets) > _MOST_BYTES:
        raise WorkbookError(
            f"{name}: its sheets unpack to more than {_MOST_BYTES >> 20} MiB: "
            "keep only the sheets that are needed"
        )
    for entry in sheets:
        if not any(_has_no(unusual, read_pieces(archive, entry)) for unusual in _UNUSUAL):
            _SheetExtent(f"{name}: {entry.filename}").follow(read_pieces(archive, entry))


def _has_no(unusual: re.Pattern[bytes], pieces: Iterator[bytes]) -> bool:
    """Return whether nothing unusual is found.

    A tag that a piece cuts is searched with the next.
    """
    rest = b""
    for piece in pieces:
        data = rest + piece
        cut = max(data.rfind(b"<"), 0)
        if unusual.search(data, 0, cut) or _PREFIXED.search(data, 0, cut):
            return False
        rest = data[cut:]
        if len(rest) > 2 * PIECE_BYTES + 1000:  # no tag of a sheet is that long
            return False
    return not (unusual.search(rest) or _PREFIXED.search(rest))


class _SheetExtent:
    """A parser that follows the cells of a sheet and computes its size."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._places = Places(name)
        self._rows = self._columns = 0  # largest row and column with content

    def follow(self, pieces: Iterator[bytes]) -> None:
        for _ in parse(pieces, self._name, Handlers(self._start, self._places.end)):
            pass

    def _start(self, kind: str, attributes: dict[str, str]) -> None:
        if not self._places.start(kind, attributes) and self._places.cell is not None:
            self._fill(self._places.cell)

    def _fill(self, cell: Place) -> None:
        self._rows = max(self._rows, cell.row)
        self._columns = max(self._columns, cell.column)
        if self._rows * self._columns > _MOST_CELLS:
            raise WorkbookError(
                f"{self._name}: cell {cell} makes the sheet "
                f"{self._rows:,} rows by {self._columns:,} columns: "
                "delete stray cells far outside of the table"
            )
