"""How the files of a table become typed rows: the description that DuckDB and the reader follow."""

from dataclasses import dataclass

from caudal.files.pieces import Wanted
from caudal.model import Table
from caudal.sql.number_columns import Number
from caudal.sql.prefilters import Prefilter


@dataclass(frozen=True)
class Cleaning:
    """How the files of a table become typed rows."""

    table: Table
    sql: str  # one batch of `raw` -> outputs, and the reason to reject last
    wanted: Wanted  # of the files
    numbers: tuple[Number, ...]  # columns of `raw` that the reader fills with numbers
    prefilter: Prefilter
