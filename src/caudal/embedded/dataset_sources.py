"""Sources of a load: files, and rows that are in memory. Each is known by its content."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from caudal.datasets.documents import StreamPart
from caudal.datasets.offered_files import offered_file
from caudal.datasets.sources import Offered
from caudal.files.cleaning import Wanted
from caudal.files.inputs import InputFile
from caudal.files.pieces import FilePiece, pieces
from caudal.files.sources import Sources
from caudal.model import Table

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
    found = offered_file(table, path, name)

    def cut(wanted: Wanted, batch_bytes: int) -> Iterator[FilePiece]:
        yield from pieces(found.file, wanted, batch_bytes=batch_bytes)
        found.require_unchanged()

    return Source(found.offered, cut)
