"""Sources of a load: files, and rows that are in memory. Each is known by its content."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from caudal.datasets.documents import StreamPart
from caudal.datasets.sources import Offered
from caudal.errors import DataError
from caudal.files.find import shown_path
from caudal.files.pieces import FilePiece, Wanted, one_line_errors, pieces
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
    return [file_source(table.name, path) for table in tables for path in sources.files(table)]


def file_source(table: str, path: Path, name: str = "") -> Source:
    """Return a file as a source. If it changes while it is loaded, the load fails."""
    with one_line_errors(path):
        before = _state(path)
        digest = _digest(path)
    shown = shown_path(path)
    offered = Offered(table, name or shown_path(path.absolute()), before[0], digest, name or shown)

    def cut(wanted: Wanted, batch_bytes: int) -> Iterator[FilePiece]:
        yield from pieces(path, wanted, batch_bytes=batch_bytes)
        with one_line_errors(path):
            if _state(path) != before:
                raise DataError(f"{shown} changed while it was loaded: load it again")

    return Source(offered, cut)


def _digest(path: Path) -> str:
    found = Digesting()
    with path.open("rb") as file:
        while data := file.read(_READ_BYTES):
            found.update(data)
    return found.value


def _state(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino
