"""The places of input files, the same for every engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from caudal.errors import DataError, UsageError
from caudal.files.find import find_files
from caudal.model import Table

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Sources:
    """The data folder, other files for some tables, and tables that are no files at all."""

    folder: Path
    overrides: Mapping[str, Sequence[str]] = field(default_factory=dict)
    frames: "Mapping[str, pa.Table]" = field(default_factory=dict)  # for the embedded engine only

    def files(self, table: Table) -> list[Path]:
        """Return the files of a table.

        A path in `overrides` is relative to the current directory or, if nothing is there, to the
        folder. If both have such a file, raise UsageError. `./x.csv` always means the current
        directory.
        """
        given = self.overrides.get(table.name)
        if given is None:
            return find_files(self.folder, table.files, table.name)
        found = (path for pattern in given for path in self._given(pattern, table.name))
        return list(dict.fromkeys(found))

    def _given(self, pattern: str, table: str) -> list[Path]:
        if pattern.startswith(("./", "../", "/")):
            return find_files(Path(), [pattern], table)
        here, there = _found(Path(), pattern, table), _found(self.folder, pattern, table)
        if here and there and not here[0].samefile(there[0]):
            raise UsageError(f"{table}: both ./{here[0]} and {there[0]} match: write one of these")
        folder = Path() if Path(pattern).exists() else self.folder
        return here or there or find_files(folder, [pattern], table)


def _found(folder: Path, pattern: str, table: str) -> list[Path]:
    try:
        return find_files(folder, [pattern], table)
    except DataError:
        return []
