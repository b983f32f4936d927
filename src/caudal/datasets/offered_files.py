"""Files that somebody wants to load. Each is known by its content."""

from collections.abc import Iterable
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from caudal.datasets.sources import Offered
from caudal.errors import DataError
from caudal.files.inputs import InputFile
from caudal.files.sources import Sources
from caudal.formats.digest import Digesting
from caudal.model import Table

_READ_BYTES = 4 << 20


@dataclass(frozen=True)
class OfferedFile:
    """A file, and its state when its digest was computed."""

    offered: Offered
    file: InputFile
    state: tuple[int, int, int]

    def require_unchanged(self) -> None:
        """Raise DataError if the file has changed since."""
        with self.file.opened():
            if self.file.place.state() != self.state:
                raise DataError(f"{self.file.name} changed while it was loaded: load it again")


def offered_files(sources: Sources, tables: Iterable[Table]) -> list[OfferedFile]:
    """Return the files of the tables. All of them are read, for their digests."""
    return [offered_file(table.name, file) for table in tables for file in sources.files(table)]


def offered_file(table: str, path: Path | InputFile, name: str = "") -> OfferedFile:
    """Return a file with its digest; `name` is another name than its path."""
    file = InputFile.of(path)
    with file.opened() as opened:
        before = file.place.state()
        digest = _digest(opened)
    known = name or file.place.identity
    return OfferedFile(Offered(table, known, before[0], digest, name or file.name), file, before)


def _digest(file: BufferedReader) -> str:
    found = Digesting()
    while data := file.read(_READ_BYTES):
        found.update(data)
    return found.value
