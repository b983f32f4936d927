"""The plan of a job: how its queries are divided into steps, and how its tables are cleaned.

It is data only and is stored as JSON. A worker needs nothing else of the application.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from caudal.datasets.documents import DatasetTable
from caudal.decoding import decode_json
from caudal.errors import FormatError, QueryError
from caudal.files.cleaning import Cleaning
from caudal.formats.frame import JSON_ERRORS
from caudal.model import Query, Table
from caudal.sql.planner import Plan, Scan


@dataclass(frozen=True)
class TableMap:
    """How the batches of one table are mapped.

    `prefiltered` is the cleaning to use when every scan has its hint. It looks at the keys of each
    row first and drops rows that every scan would drop, before it reads the rest of the row. It
    expects the keys of each scan under the name `prefilter_keys(scan)`.
    """

    cleaning: Cleaning  # `raw` -> the columns that the scans read, and `reject`
    scans: tuple[Scan, ...]
    prefiltered: Cleaning | None = None

    @property
    def table(self) -> Table:
        return self.cleaning.table


@dataclass(frozen=True)
class LoadTables:
    """What a load writes: the tables of its dataset, and the versions of what makes the files."""

    tables: tuple[DatasetTable, ...]
    made_by: str


@dataclass(frozen=True)
class JobPlan:
    """A plan, the cleaning of its tables, and the column names of its results."""

    plan: Plan
    maps: tuple[TableMap, ...]
    queries: tuple[Query, ...]
    names: dict[str, tuple[str, ...]]  # of a query's columns, where its finish has others
    load: LoadTables | None = None  # rows are loaded into a dataset; there are no queries

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
        """Prefix every QueryError in this context with the files of these queries."""
        try:
            yield
        except QueryError as error:
            origins = ", ".join(self.query(name).origin for name in queries)
            raise type(error)(f"{origins}: {error}") from None


NO_PLAN = JobPlan(Plan({}, (), (), ()), (), (), {})  # of a job that reads no table


def to_json(split: JobPlan) -> bytes:
    return msgspec.json.encode(split)


def from_json(data: bytes | msgspec.Raw) -> JobPlan:
    try:
        return decode_json(data, JobPlan)
    except JSON_ERRORS as error:
        raise FormatError(f"a plan that this Caudal does not understand: {error}") from error


def prefilter_keys(scan: str) -> str:
    """Return the name of the table of keys that a scan's rows must match."""
    return f"caudal_hint_{scan}"
