"""What a run of some queries needs to know, decided once: the plan, and how tables are cleaned.

It is data only and travels as JSON: whoever executes it needs nothing else of the application.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from caudal.errors import FormatError, QueryError
from caudal.files.cleaning import Cleaning
from caudal.formats.frame import JSON_ERRORS
from caudal.model import Query, Table
from caudal.sql.planner import Plan, Scan


@dataclass(frozen=True)
class TableMap:
    """How the batches of one table are mapped.

    `sifted` is the cleaning for when every scan has its hint: rows that all of them would drop are
    dropped by a look at their keys, before they are read. It needs the keys as `sifted_by(scan)`.
    """

    cleaning: Cleaning  # `raw` -> the columns that the scans read, and `reject`
    scans: tuple[Scan, ...]
    prefiltered: Cleaning | None = None

    @property
    def table(self) -> Table:
        return self.cleaning.table


@dataclass(frozen=True)
class JobPlan:
    """A plan with the way its tables are cleaned and its results are named."""

    plan: Plan
    maps: tuple[TableMap, ...]
    queries: tuple[Query, ...]
    names: dict[str, tuple[str, ...]]  # of a query's columns, where its finish has others

    def table(self, name: str) -> TableMap:
        return next(one for one in self.maps if one.table.name == name)

    def query(self, name: str) -> Query:
        return next(one for one in self.queries if one.name == name)

    def without_hints(self) -> "JobPlan":
        """Return the plan whose scans drop no row early."""
        maps = tuple(replace(one, prefiltered=None) for one in self.maps)
        return replace(self, plan=msgspec.structs.replace(self.plan, hints=()), maps=maps)

    @contextlib.contextmanager
    def naming(self, queries: Sequence[str]) -> Iterator[None]:
        """A query's error in here names the files of these queries."""
        try:
            yield
        except QueryError as error:
            origins = ", ".join(self.query(name).origin for name in queries)
            raise type(error)(f"{origins}: {error}") from None


def to_json(split: JobPlan) -> bytes:
    return msgspec.json.encode(split)


def from_json(data: bytes | msgspec.Raw) -> JobPlan:
    try:
        return msgspec.json.decode(data, type=JobPlan)
    except JSON_ERRORS as error:
        raise FormatError(f"a plan that this Caudal does not understand: {error}") from error


def prefilter_keys(scan: str) -> str:
    """The name of the keys that a scan's rows must meet."""
    return f"caudal_hint_{scan}"
