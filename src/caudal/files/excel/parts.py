"""The parts of an xlsx archive: read in pieces, and parsed without expanding any entity."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import NamedTuple
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile, ZipInfo

from caudal.errors import WorkbookError

PIECE_BYTES = 1 << 20


class Handlers(NamedTuple):
    """The callbacks for the elements of a part (by name without prefix) and their text."""

    start: Callable[[str, dict[str, str]], None]
    end: Callable[[str], None] | None = None
    text: Callable[[str], None] | None = None


@contextmanager
def open_archive(data: bytes, name: str) -> Iterator[ZipFile]:
    """Open the archive of a workbook. Raise WorkbookError for damage, now or while it is read."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            yield archive
    except (BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError) as error:
        raise WorkbookError(
            f"{name} is not an Excel workbook ({error}): give an xlsx or xls file"
        ) from error


def read_pieces(archive: ZipFile, entry: ZipInfo) -> Iterator[bytes]:
    with archive.open(entry) as part:
        while piece := part.read(PIECE_BYTES):
            yield piece


def parse(pieces: Iterator[bytes], name: str, handlers: Handlers) -> Iterator[None]:
    """Parse a part and call the handlers. Yield after every piece."""
    parser = expat.ParserCreate()
    _connect(parser, handlers)

    def refuse_entities(*_: object) -> None:
        raise WorkbookError(f"{name} is not a sheet of a workbook: it declares a document type")

    parser.StartDoctypeDeclHandler = refuse_entities
    try:
        for piece in pieces:
            parser.Parse(piece, False)
            yield
        parser.Parse(b"", True)
        yield
    except expat.ExpatError as error:
        raise WorkbookError(f"{name} is not a sheet of a workbook: {error}") from error


def _connect(parser: expat.XMLParserType, handlers: Handlers) -> None:
    start, end = handlers.start, handlers.end
    parser.StartElementHandler = lambda tag, attributes: start(_kind(tag), attributes)
    if end is not None:
        parser.EndElementHandler = lambda tag: end(_kind(tag))
    parser.CharacterDataHandler = handlers.text


def _kind(tag: str) -> str:
    return tag.rpartition(":")[2]
