"""One input file: what it holds, and its text as CSV.

Whatever a file is (its separator, encoding, compression), engines see one of two things: a stream
of CSV (canonical.py), or rows of typed columns (typed.py). A usual CSV file is the stream itself.
"""

import contextlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any

from caudal.errors import DataError, UsageError
from caudal.files.compressed import COMPRESSION, DAMAGE, compression, unpacked
from caudal.files.detect import MOST_SAMPLE_BYTES, Form, detect
from caudal.files.encodings import as_utf8, byte_order_mark, find_encoding
from caudal.files.first_records import SAMPLE_BYTES
from caudal.files.json_lines import is_json_lines
from caudal.files.places import LocalPlace, Place
from caudal.files.reading import USUAL
from caudal.files.streams import ByteStream, FieldChanges
from caudal.kernels.csv import Stream
from caudal.model import Reading

FILENAME = "filename"
_PIECE_BYTES = 1 << 20
_USUAL_NAME = rb'"?[A-Za-z_][\w /.:-]*"?'
_USUAL_HEADER = re.compile(rb"%b(?:,%b)+\r?" % (_USUAL_NAME, _USUAL_NAME))
_EXCEL = {".xlsx", ".xlsm", ".xls"}
_JSON = {".jsonl", ".ndjson", ".json"}
_TABS = {".tsv", ".tab"}
_OLD_EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@dataclass(frozen=True)
class TextForm:
    """How the text of a file is encoded and written."""

    encoding: str
    has_mark: bool  # a byte order mark
    form: Form

    @property
    def notes(self) -> tuple[str, ...]:
        read_as = f"read as {self.encoding}"
        told = () if self.has_mark or self.encoding == "utf-8" else (read_as,)
        return (*told, *self.form.notes)


@dataclass(frozen=True, eq=False)
class InputFile:
    """A file of a table. `columns` are those of the table, if they are known."""

    place: Place
    reading: Reading = USUAL
    columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, file: "Path | InputFile") -> "InputFile":
        return file if isinstance(file, InputFile) else cls(LocalPlace(file))

    @property
    def name(self) -> str:
        return self.place.name

    @cached_property
    def size(self) -> int:
        return self.place.size()

    @contextlib.contextmanager
    def opened(self) -> Iterator[BufferedReader]:
        """Open the bytes; raise what goes wrong with them as a DataError that names the file."""
        try:
            with self.place.open() as file:
                yield file
        except DAMAGE as error:
            reason = error.strerror if isinstance(error, OSError) else None
            text = " ".join((reason or str(error)).split())
            raise DataError(f"cannot read {self.name}: {text}") from error

    @cached_property
    def kind(self) -> str:
        """What the file holds: text, json, parquet or excel."""
        if self.reading.format is not None:
            return {"csv": "text"}.get(self.reading.format, self.reading.format)
        suffix = self._suffix
        if suffix == ".parquet":
            return "parquet"
        with self.opened() as file:
            first = file.peek(8)
            if first.startswith(b"PAR1"):
                return "parquet"
            if suffix in _EXCEL or first.startswith(_OLD_EXCEL) or _is_xlsx(file, first):
                return "excel"
            if suffix in {".jsonl", ".ndjson"}:
                return "json"
            return self._kind_of_text(file)

    def _kind_of_text(self, file: BufferedReader) -> str:
        sample, final, _ = _sampled(self.pieces(file), SAMPLE_BYTES)
        if is_json_lines(sample, final=final):
            return "json"
        if self._suffix == ".json":
            raise DataError(f"{self.name} is not one JSON object on each line: convert it to that")
        return "text"

    @property
    def _suffix(self) -> str:
        """The ending of the name, without that of a compression."""
        path = self.place.path
        return (path.with_suffix("") if path.suffix in COMPRESSION else path).suffix.lower()

    def codec(self, file: BufferedReader) -> str | None:
        return compression(self.place.path.suffix.lower(), file.peek(8))

    def pieces(self, file: BufferedReader) -> Iterator[bytes]:
        """Yield the unpacked bytes."""
        codec = self.codec(file)
        source = file if codec is None else unpacked(file, codec, self.name)
        while piece := source.read(_PIECE_BYTES):
            yield bytes(piece)

    @cached_property
    def text(self) -> TextForm:
        """How the text is written, as given or as found."""
        with self.opened() as file:
            return find_form(self.pieces(file), self._reading, self.name)[0]

    @property
    def _reading(self) -> Reading:
        if self.reading.delimiter is None and self._suffix in _TABS:
            return replace(self.reading, delimiter="\t")
        return self.reading

    @property
    def changes(self) -> FieldChanges:
        """What is changed in the fields of a text."""
        return FieldChanges(
            self.reading.decimal, self.reading.date_format, self.added(self.text.form.names)
        )

    def added(self, names: tuple[str, ...]) -> dict[str, str]:
        """Return the columns that every row gets, with their text."""
        added = {FILENAME: self.name} if self.reading.filename else {}
        if self.reading.filename and FILENAME in names:
            raise UsageError(f"{self.name} has a column {FILENAME!r} of its own: rename it")
        if self.reading.union_by_name:
            added |= {one: "" for one in self.columns if one not in names and one not in added}
        return added

    @cached_property
    def is_usual(self) -> bool:
        """Whether its unpacked bytes are CSV as they are."""
        text = self.text
        return text.encoding == "utf-8" and text.form.is_usual and not self.changes

    @cached_property
    def is_plain(self) -> bool:
        """Whether its name finds it on this machine, and a range of its bytes is one of records."""
        return isinstance(self.place, LocalPlace) and self.place.is_named and self.has_ranges

    @cached_property
    def has_ranges(self) -> bool:
        """Whether a range of its bytes is a range of records, wherever it is."""
        if self.kind != "text":
            return False
        with self.opened() as file:
            return self.codec(file) is None and self.is_usual

    @property
    def first_line(self) -> int:
        """The number of the first line of `stream`."""
        return 1 if self.is_usual else 0

    def stream(self, file: BufferedReader) -> Stream:
        """Return the text as a stream of CSV."""
        if self.is_usual:
            codec = self.codec(file)
            found: Any = file if codec is None else unpacked(file, codec, self.name)
            return found  # type: ignore[no-any-return]
        from caudal.files.canonical import canonical  # Arrow's compute functions load slowly

        pieces = _decoded(self.pieces(file), self.text)
        return ByteStream(canonical(pieces, self.text.form, self.changes, self.name))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found about the text, to be told."""
        return self.text.notes if self.kind == "text" else ()


def find_form(
    pieces: Iterator[bytes], reading: Reading, name: str
) -> tuple[TextForm, Iterator[bytes]]:
    """Return how a text is written, and all its pieces again."""
    size, seen = SAMPLE_BYTES, iter(pieces)
    while True:
        sample, final, seen = _sampled(seen, size)
        mark = byte_order_mark(sample)
        encoding = mark[0] if mark else reading.encoding or find_encoding(sample, final=final)
        text = b"".join(as_utf8(iter([sample[mark[1] if mark else 0 :]]), encoding))
        try:
            form = detect(text, reading, final=final or size >= MOST_SAMPLE_BYTES)
        except DataError as error:
            raise DataError(f"{name}: {error}") from None
        if form is not None:
            return TextForm(encoding, mark is not None, form), seen
        size *= 8


def canonical_stream(pieces: Iterator[bytes], reading: Reading, name: str) -> tuple[Stream, int]:
    """Return a text that can be read once as a stream of CSV, and the number of its first line.

    Its rows may come slowly, so a sample is awaited only in doubt: not if the first line is a usual
    header.
    """
    is_usual, pieces = _begins_as_usual(pieces) if reading == Reading() else (False, pieces)
    if is_usual:
        return ByteStream(pieces), 1
    text, seen = find_form(pieces, reading, name)
    changes = FieldChanges(reading.decimal, reading.date_format)
    if text.form.is_usual and text.encoding == "utf-8" and not changes:
        return ByteStream(seen), 1
    from caudal.files.canonical import canonical

    return ByteStream(canonical(_decoded(seen, text), text.form, changes, name)), 0


def pieces_of_stream(stream: Stream) -> Iterator[bytes]:
    """Yield the bytes of anything that fills buffers, unpacked if they are compressed."""
    found = _raw_pieces(stream)
    first = next(found, b"")
    codec = compression("", first)
    whole = itertools.chain([first], found)
    if codec is None:
        yield from whole
        return
    source = unpacked(BufferedReader(_RawPieces(whole)), codec, "standard input")
    while piece := source.read(_PIECE_BYTES):
        yield bytes(piece)


def _raw_pieces(stream: Stream) -> Iterator[bytes]:
    """Yield what is there; a buffered reader would wait until the buffer is full."""
    buffer, fill = bytearray(_PIECE_BYTES), getattr(stream, "readinto1", stream.readinto)
    while count := fill(buffer):
        yield bytes(buffer[:count])


class _RawPieces(RawIOBase):
    """Pieces of bytes as a file of Python."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._stream = ByteStream(pieces)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._stream.readinto(buffer)


def _decoded(pieces: Iterator[bytes], text: TextForm) -> Iterator[bytes]:
    """Yield a text as UTF-8 without a byte order mark."""
    if text.encoding == "utf-8":
        first = next(pieces, b"")
        yield first.removeprefix(b"\xef\xbb\xbf")
        yield from pieces
        return
    for place, piece in enumerate(as_utf8(pieces, text.encoding)):
        yield piece.removeprefix(b"\xef\xbb\xbf") if place == 0 else piece


def _begins_as_usual(pieces: Iterator[bytes]) -> tuple[bool, Iterator[bytes]]:
    """Return whether the first line is names between commas in ASCII, and all pieces again."""
    taken = b""
    while b"\n" not in taken and len(taken) < SAMPLE_BYTES:
        piece = next(pieces, None)
        if piece is None:
            break
        taken += piece
    line, ending, _ = taken.partition(b"\n")
    names = line.strip().lower().split(b",")
    is_usual = bool(ending) and _USUAL_HEADER.fullmatch(line) is not None
    is_usual = is_usual and len(set(names)) == len(names)
    return is_usual, itertools.chain([taken] if taken else [], pieces)


def _sampled(pieces: Iterator[bytes], size: int) -> tuple[bytes, bool, Iterator[bytes]]:
    """Return the first bytes, whether those are all, and all pieces again."""
    taken: list[bytes] = []
    while sum(map(len, taken)) <= size:
        piece = next(pieces, None)
        if piece is None:
            break
        taken.append(piece)
    whole = b"".join(taken)
    return whole[:size], len(whole) <= size, itertools.chain([whole] if whole else [], pieces)


def _is_xlsx(file: BufferedReader, first: bytes) -> bool:
    """Whether an archive is a workbook."""
    if not first.startswith(b"PK\x03\x04") or not file.seekable():
        return False
    import zipfile

    try:
        names = zipfile.ZipFile(file).namelist()
    except zipfile.BadZipFile:
        return False
    finally:
        file.seek(0)
    return "[Content_Types].xml" in names
