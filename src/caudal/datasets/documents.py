"""The documents of a dataset: what it is, its versions, and the progress of a load.

Each is JSON with a digest (formats/document.py).
"""

import re
from typing import Literal, TypeVar

import msgspec

from caudal.datasets import keys
from caudal.datasets.types import check_stored
from caudal.errors import FormatError
from caudal.formats import document
from caudal.formats.frame import Count, Milliseconds
from caudal.formats.loads import FilePath
from caudal.formats.loads import StoredFile as StoredFile
from caudal.formats.loads import StreamPart as StreamPart

FORMAT = 1
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")

Kind = Literal["create", "load", "compact", "vacuum"]
Content = TypeVar("Content", bound=msgspec.Struct)


class DatasetTable(msgspec.Struct, frozen=True):
    """A table: its columns with DuckDB's types, and how its rows are cleaned.

    `cleaning` is a digest of what follows it. Datasets of earlier versions have only the digest.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    cleaning: str = ""  # empty for the table of rejected rows
    sql: str = ""  # SELECT … FROM raw
    reads: tuple[str, ...] = ()  # columns of the files
    sentiment: str = ""  # the model, if `sql` uses one


class DatasetHead(msgspec.Struct, frozen=True):
    """What a dataset is. `id` is random; the ids of the Delta tables are derived from it."""

    id: str
    application: str
    created: Milliseconds
    tables: tuple[DatasetTable, ...]


class LoadedSource(msgspec.Struct, frozen=True):
    """Something that was loaded: a file, a part of a stream, or appended rows."""

    table: str
    name: str
    bytes: Count
    digest: str
    rows: Count = 0
    rejected: Count = 0
    part: StreamPart | None = None


class TableChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a version does to a table: consecutive files are removed, and added ones take
    their place. Without removed files, added ones come behind all others.
    """

    add: tuple[StoredFile, ...] = ()
    remove: tuple[FilePath, ...] = ()


class Vacuumed(msgspec.Struct, frozen=True):
    """The files that a vacuum deletes, by table, and the oldest version that it keeps."""

    oldest: Count
    files: dict[str, tuple[FilePath, ...]]


class DatasetVersion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A version: everything that changed since the one before it."""

    number: Count
    time: Milliseconds  # never earlier than that of the version before
    kind: Kind
    load: str = ""
    sources: tuple[LoadedSource, ...] = ()
    changes: dict[str, tuple[TableChange, ...]] = {}
    head: DatasetHead | None = None  # only of version 0
    vacuumed: Vacuumed | None = None


class BatchDone(msgspec.Struct, frozen=True):
    """A batch of a load whose files are written; None where it gave no rows."""

    source: Count  # place among the sources of the load
    rows: Count
    rejected: Count
    repaired: Count
    file: StoredFile | None
    rejects: StoredFile | None


def encode_head(head: DatasetHead) -> bytes:
    return document.encode("dataset", FORMAT, head)


def decode_head(data: bytes) -> DatasetHead:
    return checked_head(document.decode(data, "dataset", FORMAT, DatasetHead, keys.DATASET))


def checked_head(head: DatasetHead) -> DatasetHead:
    """Raise FormatError unless ids, keys, SQL and Delta logs can be made of this."""
    if not _ID.match(head.id) or len({one.name for one in head.tables}) < len(head.tables):
        raise FormatError(f"{keys.DATASET} has no id, or the same table twice")
    for table in head.tables:
        check_stored(table.name, table.columns)
    return head


def encode_version(version: DatasetVersion) -> bytes:
    return document.encode("dataset version", FORMAT, version)


def decode_version(data: bytes, number: int) -> DatasetVersion:
    """Return a version. Raise FormatError unless it is whole and has this number."""
    key = keys.version_key(number)
    version = document.decode(data, "dataset version", FORMAT, DatasetVersion, key)
    if version.number != number:
        raise FormatError(f"{key} holds version {version.number}")
    if version.head is not None:
        checked_head(version.head)
    return version


def encode_batch(batch: BatchDone) -> bytes:
    return document.encode("dataset batch", FORMAT, batch)


def decode_batch(data: bytes, key: str) -> BatchDone:
    return document.decode(data, "dataset batch", FORMAT, BatchDone, key)
