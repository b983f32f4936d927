"""Sources of a load: files, and rows that are in memory. Each is known by its content."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

from caudal.datasets.documents import StreamPart
from caudal.datasets.sources import Offered
from caudal.errors import DataError
from caudal.files.cleaning import Wanted
from caudal.files.inputs import InputFile
from caudal.files.pieces import FilePiece, pieces
from caudal.files.sources import Sources
from caudal.formats.digest import Digesting
from caudal.model import Table

_READ_BYTES = 4 << 20

Cut = Callable[[Wanted, int], Iterator[FilePiece]]  # columns, bytes of a piece


@dataclass(frozen=True)
class Source:
    """A source with the way to read it. `lines_before` is added to the lines of rejected rows."""

    offered: Offered
    cut: Cut = field(repr=False)
    part: StreamPart | None = None
    lines_before: int = 0


def file_sources(sources: Sources, tables: Iterable[Table]) -> list[Source]:
    """Return the files of the tables. All of them are read, for their digests."""
    return [file_source(table.name, file) for table in tables for file in sources.files(table)]


def file_source(table: str, path: Path | InputFile, name: str = "") -> Source:
    """Return a file as a source. If it changes while it is loaded, the load fails."""
    source = InputFile.of(path)
    with source.opened() as opened:
        before = source.place.state()
        digest = _digest(opened)
    offered = Offered(table, name or source.place.identity, before[0], digest, name or source.name)

    def cut(wanted: Wanted, batch_bytes: int) -> Iterator[FilePiece]:
        yield from pieces(source, wanted, batch_bytes=batch_bytes)
        with source.opened():
            if source.place.state() != before:
                raise DataError(f"{source.name} changed while it was loaded: load it again")

    return Source(offered, cut)


def _digest(file: BufferedReader) -> str:
    found = Digesting()
    while data := file.read(_READ_BYTES):
        found.update(data)
    return found.value
