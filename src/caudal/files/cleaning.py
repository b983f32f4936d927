"""The description, for DuckDB and the reader, of how a table's files become typed rows."""

from dataclasses import dataclass

from caudal.files.pieces import Wanted
from caudal.model import Table
from caudal.sql.table_needs import Number, Prefilter


@dataclass(frozen=True)
class Cleaning:
    """The rules by which the files of a table become typed rows."""

    table: Table
    sql: str  # maps a batch of `raw` to output columns; the last one is the reject reason
    wanted: Wanted  # columns to read from the files
    numbers: tuple[Number, ...]  # columns of `raw` that the reader parses as numbers
    prefilter: Prefilter
