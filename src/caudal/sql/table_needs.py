"""What the reader of a table needs to know about the SQL, as plain data.

`footprint.py` finds which rows queries can see, `number_columns.py` which columns are numbers, and
`prefilters.py` which rows to drop early. They parse SQL. The data stands in this module, so that a
process that parses nothing does not load the parser.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from caudal.sql.quoting import quote

Schema = Mapping[str, str]  # column -> DuckDB type
Schemas = Mapping[str, Schema]  # by table, in the order of reading

EXPENSIVE = {"sentiment": "DOUBLE"}  # function -> type of its result


@dataclass(frozen=True)
class KeyMembership:
    """The condition that the value of a column is in a key set."""

    column: str
    keys: str

    @property
    def sql(self) -> str:
        return f"{quote(self.column)} IN (SELECT * FROM {self.keys})"


@dataclass(frozen=True)
class VisibleRows:
    """The rows of a table that a scan can see: those for which all of these conditions hold."""

    members: tuple[KeyMembership, ...] = ()
    conditions: tuple[str, ...] = ()  # over the table's columns
    key_sets: tuple[tuple[str, str], ...] = ()  # (name, SELECT): the sets that the members read

    @property
    def condition(self) -> str | None:
        """The conditions as SQL over the table's columns; None if all rows are visible."""
        parts = (*(one.sql for one in self.members), *self.conditions)
        return f"({' AND '.join(parts)})" if parts else None


ALL_ROWS = VisibleRows()


@dataclass(frozen=True)
class ComputedColumn:
    """An expensive function of one column, computed where the row is visible, null elsewhere."""

    table: str
    function: str
    column: str
    visible_rows: VisibleRows = ALL_ROWS

    @property
    def name(self) -> str:
        return f"{self.function}({self.column})"

    @property
    def type(self) -> str:
        return EXPENSIVE[self.function]


@dataclass(frozen=True)
class Footprint:
    """A query over tables that hold its computed columns, and the rows it can see of each table.

    All rows are visible of a table that `visible_rows` does not name.
    """

    sql: str
    computed_columns: tuple[ComputedColumn, ...] = ()
    visible_rows: Mapping[str, tuple[VisibleRows, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Number:
    """A column of the files that is read as a number. An integer has `precision` 0."""

    column: str
    precision: int = 0
    scale: int = 0
    is_plain: bool = False  # written with `number_text`: no underscores

    @property
    def type(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})" if self.precision else "BIGINT"

    @property
    def name(self) -> str:
        """The column of `raw` that holds the numbers."""
        return f"{self.column} as {'plain ' if self.is_plain else ''}{self.type}"

    @property
    def odd(self) -> str:
        """The column of `raw` that holds the texts which the kernel does not parse."""
        return f"odd {self.name}"


@dataclass(frozen=True)
class Flag:
    """A column of `raw` that says whether the value of another one may be in a key set."""

    column: str
    keys: str

    @property
    def name(self) -> str:
        return f"{self.column} in {self.keys}"


@dataclass(frozen=True)
class Prefilter:
    """The flags of a table, and which rows to drop.

    A row is dropped if none of `present` is null in it, and if for none of `visible_rows` all flags
    are set.
    """

    flags: tuple[Flag, ...] = ()
    present: tuple[str, ...] = ()
    visible_rows: tuple[tuple[Flag, ...], ...] = ((),)  # an empty tuple: every row is visible

    @property
    def drops(self) -> bool:
        """Return whether it can drop any row."""
        return () not in self.visible_rows

    @property
    def columns(self) -> frozenset[str]:
        """The columns of `raw` that it reads."""
        return frozenset([*self.present, *(flag.column for flag in self.flags)])
