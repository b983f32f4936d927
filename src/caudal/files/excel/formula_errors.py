"""Find the cells of an xlsx sheet with a formula error (#N/A). The reader returns them as empty.

Rules:

1. Such a cell has the type `e` and a text.
2. Most sheets write these cells in the usual form: a search for the type is enough, without
   parsing the XML. Only a sheet that writes one in another form, or has comments, is parsed cell
   by cell.
3. Nothing is kept: cells are yielded while the sheet is read in pieces. Cells that were yielded
   before something unusual was found are yielded again.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from caudal.files.excel.parts import PIECE_BYTES, Handlers, parse
from caudal.files.excel.places import Place, Places, column_index

_LONGEST_TEXT = 40

_TYPE = re.compile(rb"""t\s*=\s*["']e["']""")
_CELL = re.compile(rb"<(?:[^\s<>/:]+:)?c\s")
_ATTRIBUTES = rb'(?: [\w:]+="[^"<&]*"){0,9}'  # few, so that no match takes long
_USUAL = re.compile(
    rb'<c r="([A-Z]{1,3})([1-9][0-9]{0,6})"' + _ATTRIBUTES + rb' t="e"' + _ATTRIBUTES + rb">"
    rb"(?:<f[^<]*(?:/>|</f>))?<v>([\w#/!?]{1,40})</v>"
)


class ErrorCell(NamedTuple):
    """A cell with a formula error."""

    place: Place
    text: str


class _UnusualError(Exception):
    """The sheet must be parsed cell by cell."""


def error_cells(read: Callable[[], Iterator[bytes]], name: str) -> Iterator[ErrorCell]:
    """Yield the error cells of the sheet whose pieces `read` returns, some possibly twice.

    Raises WorkbookError if its XML is not valid.
    """
    try:
        yield from _usual_cells(read())
    except _UnusualError:
        yield from _SheetErrors(name).follow(read())


def _usual_cells(pieces: Iterator[bytes]) -> Iterator[ErrorCell]:
    """Yield the error cells of the usual form.

    A cell that a piece cuts is searched with the next piece: only complete cells precede the last
    `<c `.
    """
    rest = b""
    for piece in pieces:
        data = rest + piece
        end = data.find(b"</sheetData>")
        cut = end if end >= 0 else max(data.rfind(b"<c "), 0)
        yield from _usual_cells_in(data, cut)
        if end >= 0:
            return
        rest = data[cut:]
        if len(rest) > 2 * PIECE_BYTES + 1000:  # no cell is that long
            raise _UnusualError
    yield from _usual_cells_in(rest, len(rest))


def _usual_cells_in(data: bytes, end: int) -> Iterator[ErrorCell]:
    # Comments and instructions contain no cells. Only the declaration starts before byte 4.
    if _opens(data, b"!", 0, end) or _opens(data, b"?", 4, end):
        raise _UnusualError
    seen = 0
    for hit in _TYPE.finditer(data, 0, end):
        tag, seen = data.rfind(b"<", seen, hit.start()), hit.end()
        if tag < 0:
            continue  # text, or the rest of a tag that was already checked
        if cell := _USUAL.match(data, tag, end):
            place = Place(int(cell[2]), column_index(cell[1].decode()) + 1)
            yield ErrorCell(place, cell[3].decode())
        elif _CELL.match(data, tag, end):
            raise _UnusualError


def _opens(data: bytes, mark: bytes, start: int, end: int) -> bool:
    """Return whether any tag starts with a mark.

    A search for the rare mark first is ten times faster.
    """
    first = data.find(mark, start, end)
    return first >= 0 and data.find(b"<" + mark, max(first - 1, start), end) >= 0


class _SheetErrors:
    """A parser that follows the cells of a sheet and finds those with errors."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._places = Places(name)
        self._is_error = False  # of the current cell
        self._text: str | None = None  # the value of the current cell so far
        self._found: list[ErrorCell] = []

    def follow(self, pieces: Iterator[bytes]) -> Iterator[ErrorCell]:
        for _ in parse(pieces, self._name, Handlers(self._start, self._end, self._read)):
            yield from self._found
            self._found.clear()

    def _start(self, kind: str, attributes: dict[str, str]) -> None:
        if self._places.start(kind, attributes):
            self._is_error = kind == "c" and attributes.get("t") == "e"
        elif kind == "v" and self._is_error:
            self._text = ""

    def _read(self, text: str) -> None:
        if self._text is not None:
            self._text = (self._text + text)[:_LONGEST_TEXT]

    def _end(self, kind: str) -> None:
        if kind == "v":
            if self._places.cell is not None and self._text:
                self._found.append(ErrorCell(self._places.cell, self._text))
            self._text = None
        self._places.end(kind)
