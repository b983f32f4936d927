"""Rejected rows, counted by table and reason, with the first lines of each reason.

Memory is bounded for any number of rejected rows: only a few lines per reason are kept, and rows
beyond MOST_REASONS different reasons are counted under one reason. To get all lines, pass a sink:
it is called in order with every row whose line is known.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from caudal.errors import RejectedRowError
from caudal.model import RejectedRow

_LINES_KEPT = 5
MOST_REASONS = 10_000
OTHER = "other reasons"
_NONE = ("no rows were rejected",)
_NO_RECORDS: Mapping[int, str] = {}


def strict_error(row: RejectedRow) -> RejectedRowError:
    """Return the error with which a strict run fails at its first rejected row."""
    return RejectedRowError(f"{row.file} line {row.line}: {row.reason} (table {row.table})")


@dataclass
class RejectReason:
    """One reject reason of one table, with its row count and first lines."""

    table: str
    reason: str
    count: int = 0
    first: list[tuple[str, int]] = field(default_factory=list)  # (file, line)
    records: dict[int, str] = field(default_factory=dict)  # by place in `first`, if it is known

    def told(self) -> str:
        """Return a readable line: `movies: 2 rows: id is not an integer (lines 4, 9)`."""
        lines = ", ".join(str(line) for _, line in self.first)
        more = ", …" if self.count > len(self.first) else ""
        plural = "" if self.count == 1 else "s"
        return (
            f"{self.table}: {self.count:,} row{plural}: {self.reason} (line{plural} {lines}{more})"
        )


@dataclass(repr=False)
class Rejects:
    """The rejects report of a run. Falsy when nothing was rejected."""

    sink: Callable[[RejectedRow], None] | None = None
    repaired: dict[str, int] = field(default_factory=dict)  # rows with invalid UTF-8
    notes: list[str] = field(default_factory=list)  # what was found about the forms of files
    unread: list[str] = field(default_factory=list)  # of which files only the beginning was read
    lines_kept: int | None = _LINES_KEPT  # per reason; None: all
    keeps_records: bool = False  # whether engines give the records of the first rows
    _reasons: dict[tuple[str, str], RejectReason] = field(default_factory=dict)

    def add(self, rows: Iterable[RejectedRow], records: Mapping[int, str] = _NO_RECORDS) -> None:
        """Add rows of one file; `records` are the texts of some of them, by line."""
        for row in rows:
            key = row.table, row.reason
            if key not in self._reasons and len(self._reasons) >= MOST_REASONS:
                key = row.table, OTHER
            found = self._reasons.setdefault(key, RejectReason(*key))
            found.count += row.rows
            if not row.line:
                continue
            if self.lines_kept is None or len(found.first) < self.lines_kept:
                if row.line in records and len(found.first) < _LINES_KEPT:
                    found.records[len(found.first)] = records[row.line]
                found.first.append((row.file, row.line))
            if self.sink is not None:
                self.sink(row)

    def enter(self, found: RejectReason) -> None:
        """Add a reason that was counted elsewhere."""
        self._reasons[found.table, found.reason] = found

    def note_repaired(self, table: str, rows: int) -> None:
        if rows:
            self.repaired[table] = self.repaired.get(table, 0) + rows

    def __iter__(self) -> Iterator[RejectReason]:
        """Iterate by table in reading order, most frequent reason first."""
        tables = list(dict.fromkeys(table for table, _ in self._reasons))
        return iter(
            sorted(
                self._reasons.values(),
                key=lambda found: (tables.index(found.table), -found.count, found.reason),
            )
        )

    def __repr__(self) -> str:
        head = f"{self.total:,} row{'' if self.total == 1 else 's'} rejected"
        told = [head, *(f"  {found.told()}" for found in self)] if self else _NONE
        return "\n".join([*told, *self.unread])

    def __bool__(self) -> bool:
        return bool(self._reasons)

    @property
    def total(self) -> int:
        return sum(found.count for found in self._reasons.values())

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the row counts as table -> reason -> count."""
        counts: dict[str, dict[str, int]] = {}
        for found in self:
            counts.setdefault(found.table, {})[found.reason] = found.count
        return counts
