"""The answers of a gateway about datasets (docs/formats/http.md)."""

from typing import Literal

import msgspec

from caudal.formats.frame import Milliseconds
from caudal.formats.job import Text
from caudal.formats.loads import StreamPart


class DatasetEntry(msgspec.Struct, frozen=True):
    """A dataset at its newest version. Only its owner sees the `readers`."""

    owner: str
    name: str
    application: str
    version: int
    rows: int  # of all tables but that of rejected rows
    bytes: int  # of the files of this version
    tables: dict[str, int]  # rows by table
    readers: tuple[str, ...] = ()
    own: bool = False  # whether it belongs to who asks: only the owner loads and shares


class DatasetPage(msgspec.Struct, frozen=True):
    """The datasets of an owner, then those that others share with it, as far as they are listed."""

    datasets: tuple[DatasetEntry, ...]
    more: bool = False  # whether others share more with it


class DatasetTables(msgspec.Struct, frozen=True):
    """The tables of a dataset: their columns with DuckDB's types, and its application's text.

    A load or a question names the application, with queries if there are any.
    """

    version: int
    application: Text
    tables: dict[str, dict[str, str]]  # by name, `rejects` included: types by column


class ApplicationPage(msgspec.Struct, frozen=True):
    """The applications that a gateway offers for new datasets, without queries."""

    applications: tuple[Text, ...]


class VersionEntry(msgspec.Struct, frozen=True):
    """A version. Rows, files and bytes are those that it added; `time` in milliseconds."""

    number: int
    time: Milliseconds
    kind: Literal["create", "load", "compact", "vacuum"]
    load: str
    rows: int
    files: int
    bytes: int
    rejected: int
    sources: int


class VersionPage(msgspec.Struct, frozen=True):
    """Versions of a dataset, the oldest first."""

    versions: tuple[VersionEntry, ...]


class LoadedPart(msgspec.Struct, frozen=True):
    """A part of a stream that a version has brought."""

    version: int
    bytes: int
    digest: str
    part: StreamPart


class PartPage(msgspec.Struct, frozen=True):
    """The parts of streams that were loaded into a table."""

    parts: tuple[LoadedPart, ...]
