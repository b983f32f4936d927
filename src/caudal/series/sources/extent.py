"""How far the sheets of an xlsx reach, before the reader lays them out as full rectangles.

Rules:
1. A sheet is laid out from A1 to its furthest cell, so one stray cell takes as much memory as all
   that lies between. What is too much, or is no cell at all, is refused with its place.
2. Most sheets name every cell in the usual way, and none far away: one look for anything else is
   enough, without reading the XML. Only a sheet that has something else is read cell by cell.
3. A cell without content takes no room, wherever it is.
4. All is read in pieces, and not more than so many bytes in all: an archive may unpack to anything.
"""

import re
import zlib
from collections.abc import Iterator
from io import BytesIO
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile, ZipInfo, is_zipfile

from caudal.series.errors import SourceError

_MOST_CELLS = 20_000_000
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_MOST_BYTES = 1 << 30
_PIECE_BYTES = 1 << 20

# Cells that do not say plainly that they lie in some rectangle of fewer than _MOST_CELLS.
_USUAL = (
    rb"[A-C]?[A-Z][1-9][0-9]{0,4}",  # A1 to CZ99999
    rb"[A-S][1-9][0-9]{0,5}",  # A1 to S999999
    rb"[A-Z]{1,2}[1-9][0-9]{0,3}",  # A1 to ZZ9999
)
_UNUSUAL = [re.compile(rb'<c(?! r="' + usual + rb'"|[^\s/>])') for usual in _USUAL]
_PREFIXED = re.compile(rb":c[\s/>]")
_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})\Z")
_NUMBER = re.compile(r"[0-9]{1,7}\Z")
_OTHER_KINDS = ("content.xml", "xl/workbook.bin")  # ods, xlsb


def require_bounded(data: bytes, name: str) -> None:
    """Raise SourceError for an archive whose sheets the reader could not hold.

    What is no archive is left to the reader: an xls has few cells by its format.
    """
    if not is_zipfile(BytesIO(data)):
        return
    try:
        with ZipFile(BytesIO(data)) as archive:
            _check(archive, name)
    except (BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError) as error:
        raise SourceError(
            f"{name} is no Excel workbook ({error}): give an xlsx or xls file"
        ) from error


def column_index(letters: str) -> int:
    """The place of a column, from 0.

    >>> column_index("A"), column_index("Z"), column_index("AB")
    (0, 25, 27)
    """
    index = 0
    for letter in letters:
        index = index * 26 + ord(letter) - ord("A") + 1
    return index - 1


def _check(archive: ZipFile, name: str) -> None:
    if any(path.lower() in _OTHER_KINDS for path in archive.namelist()):
        raise SourceError(f"{name} is another kind of workbook: save it as xlsx")
    sheets = [entry for entry in archive.infolist() if _may_be_sheet(entry.filename)]
    # What an entry says of its size holds: its bytes are read so far, and must then match its sum.
    if sum(entry.file_size for entry in sheets) > _MOST_BYTES:
        raise SourceError(
            f"{name}: its sheets unpack to more than {_MOST_BYTES >> 20} MiB: "
            "keep only the sheets that hold the series"
        )
    for entry in sheets:
        if not any(_has_no(unusual, _pieces(archive, entry)) for unusual in _UNUSUAL):
            _Sheet(f"{name}: {entry.filename}").follow(_pieces(archive, entry))


def _may_be_sheet(path: str) -> bool:
    return path.lower().endswith(".xml")


def _pieces(archive: ZipFile, entry: ZipInfo) -> Iterator[bytes]:
    with archive.open(entry) as part:
        while piece := part.read(_PIECE_BYTES):
            yield piece


def _has_no(unusual: re.Pattern[bytes], pieces: Iterator[bytes]) -> bool:
    """Whether nothing unusual is there. A tag that a piece cuts is looked at with the next."""
    rest = b""
    for piece in pieces:
        data = rest + piece
        cut = max(data.rfind(b"<"), 0)
        if unusual.search(data, 0, cut) or _PREFIXED.search(data, 0, cut):
            return False
        rest = data[cut:]
        if len(rest) > 2 * _PIECE_BYTES + 1000:  # no tag of a sheet is that long
            return False
    return not (unusual.search(rest) or _PREFIXED.search(rest))


class _Sheet:
    """Follows the cells of a sheet and how far they reach."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._row = self._column = 0  # where we are, from 1
        self._rows = self._columns = 0  # how far there was content
        self._in_data = self._in_cell = False

    def follow(self, pieces: Iterator[bytes]) -> None:
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._refuse_entities
        try:
            for piece in pieces:
                parser.Parse(piece, False)
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise SourceError(f"{self._place} is no sheet of a workbook: {error}") from error

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        kind = tag.rpartition(":")[2]
        if kind == "sheetData":
            self._in_data = True
        elif not self._in_data:
            return
        elif kind == "row":
            self._move_to_row(attributes.get("r"))
        elif kind == "c":
            self._column += 1
            here = attributes.get("r", f"{_letters(self._column)}{self._row}")
            self._move_to_cell(here.upper())
            self._in_cell = True
        elif self._in_cell:
            self._in_cell = False
            self._fill()

    def _end(self, tag: str) -> None:
        kind = tag.rpartition(":")[2]
        if kind == "c":
            self._in_cell = False
        elif kind == "sheetData":
            self._in_data = False

    def _refuse_entities(self, *_: object) -> None:
        raise SourceError(f"{self._place} is no sheet of a workbook: it declares a document type")

    def _move_to_row(self, number: str | None) -> None:
        self._column = 0
        if number is None:
            self._row += 1
            return
        self._row = int(number) if _NUMBER.match(number) else 0
        if not 1 <= self._row <= _MOST_ROWS:
            raise self._bad(number, "row")

    def _move_to_cell(self, reference: str) -> None:
        found = _REFERENCE.match(reference)
        if found is None:
            raise self._bad(reference, "cell")
        self._row, self._column = int(found[2]), column_index(found[1]) + 1
        if not (1 <= self._row <= _MOST_ROWS and self._column <= _MOST_COLUMNS):
            raise self._bad(reference, "cell")

    def _fill(self) -> None:
        self._rows = max(self._rows, self._row)
        self._columns = max(self._columns, self._column)
        if self._rows * self._columns > _MOST_CELLS:
            raise SourceError(
                f"{self._place}: cell {_letters(self._column)}{self._row} makes the sheet "
                f"{self._rows:,} rows by {self._columns:,} columns: "
                "delete stray cells far outside of the table"
            )

    def _bad(self, reference: str, kind: str) -> SourceError:
        shown = reference if len(reference) <= 40 else reference[:39] + "…"
        return SourceError(
            f"{self._place}: {shown!r} is no {kind} of a sheet, which ends at XFD1048576: "
            "save the workbook anew, without it"
        )


def _letters(column: int) -> str:
    """The letters of a column, from 1.

    >>> _letters(1), _letters(26), _letters(28)
    ('A', 'Z', 'AB')
    """
    letters = ""
    while column:
        column, place = divmod(column - 1, 26)
        letters = chr(ord("A") + place) + letters
    return letters
