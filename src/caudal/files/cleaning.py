"""The description, for DuckDB and the reader, of how a table's files become typed rows.

It is plain data: this module loads neither a kernel nor a reader of files.
"""

from dataclasses import dataclass

from caudal.model import Table
from caudal.sql.table_needs import Number, Prefilter


@dataclass(frozen=True)
class Wanted:
    """The columns to read from a table's files: as text, as numbers, or deferred.

    Deferred columns are read later, perhaps for some rows only.
    """

    table: str
    texts: tuple[str, ...]
    numbers: tuple[tuple[str, int, int], ...] = ()  # column, precision (0: integers), scale
    later: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Return all wanted columns of the files, each once."""
        numbers = (column for column, _, _ in self.numbers)
        return tuple(dict.fromkeys([*self.texts, *self.later, *numbers]))


@dataclass(frozen=True)
class Copied:
    """An output that is a text of the files unchanged. It need not pass through DuckDB."""

    place: int  # among all outputs
    output: str
    column: str


@dataclass(frozen=True)
class Cleaning:
    """The rules by which the files of a table become typed rows."""

    table: Table
    sql: str  # maps a batch of `raw` to output columns; the last one is the reject reason
    wanted: Wanted  # columns to read from the files
    numbers: tuple[Number, ...]  # columns of `raw` that the reader parses as numbers
    prefilter: Prefilter
    copied: tuple[Copied, ...] = ()  # output columns that the SQL does not give, in their order
