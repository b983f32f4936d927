"""The places of input files, the same for every engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from caudal.errors import DataError, UsageError
from caudal.files.find import find_files
from caudal.files.places import S3, LocalPlace, Place, find_objects
from caudal.files.reading import USUAL, over
from caudal.files.spool import STANDARD_INPUT, is_once_readable, spooled, spooled_name
from caudal.model import Reading, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from caudal.files.inputs import InputFile


@dataclass(frozen=True)
class Sources:
    """The data folder, other files for some tables, and tables that are no files at all."""

    folder: Path
    overrides: Mapping[str, Sequence[str]] = field(default_factory=dict)
    frames: "Mapping[str, pa.Table]" = field(default_factory=dict)  # for the embedded engine only
    reading: Reading = USUAL  # of all tables, over what they say themselves

    def files(self, table: Table) -> "list[InputFile]":
        """Return the files of a table, with how they are read."""
        from caudal.files.inputs import InputFile

        given = self.overrides.get(table.name, table.files)
        reading = over(self.reading, table.reading)
        places = (place for pattern in given for place in self._places(pattern, table))
        return [InputFile(place, reading, table.columns) for place in dict.fromkeys(places)]

    def _places(self, pattern: str, table: Table) -> list[Place]:
        special = special_places(pattern if pattern in STANDARD_INPUT else self._joined(pattern))
        return special or [LocalPlace(path) for path in self._paths(pattern, table)]

    def _joined(self, pattern: str) -> str:
        return pattern if pattern.startswith(S3) else str(self.folder / pattern)

    def _paths(self, pattern: str, table: Table) -> list[Path]:
        """Return the local files of a pattern.

        A path in `overrides` is relative to the current directory or, if nothing is there, to the
        folder. If both have such a file, raise UsageError. `./x.csv` always means the current
        directory.
        """
        if table.name not in self.overrides:
            return find_files(self.folder, [pattern], table.name)
        return self._given(pattern, table.name)

    def _given(self, pattern: str, table: str) -> list[Path]:
        if pattern.startswith(("./", "../", "/")):
            return find_files(Path(), [pattern], table)
        here, there = _found(Path(), pattern, table), _found(self.folder, pattern, table)
        if here and there and not here[0].samefile(there[0]):
            raise UsageError(f"{table}: both ./{here[0]} and {there[0]} match: write one of these")
        folder = Path() if Path(pattern).exists() else self.folder
        return here or there or find_files(folder, [pattern], table)


def special_places(pattern: str) -> list[Place]:
    """Return the places of objects in S3, of standard input or of a pipe; else nothing."""
    if pattern.startswith(S3):
        return [*find_objects(pattern)]
    if is_once_readable(pattern):
        pattern = str(spooled(pattern))
    shown = spooled_name(pattern)
    return [LocalPlace(Path(pattern), shown)] if shown else []


def _found(folder: Path, pattern: str, table: str) -> list[Path]:
    try:
        return find_files(folder, [pattern], table)
    except DataError:
        return []
