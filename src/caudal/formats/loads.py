"""Loads into datasets, as requests, jobs and map outputs describe them."""

from typing import Annotated

import msgspec

from caudal.formats.frame import Count

LOAD = "load"  # the finish task of a load: its commit; and its result
UPKEEP = "upkeep"  # the finish task of a compaction or a vacuum

# The path of a file as its table's Delta log has it: nothing that leads out of the table.
FILE_PATH = r"^[A-Za-z0-9-]{1,80}/[A-Za-z0-9_-]{1,150}\.parquet\Z"
FilePath = Annotated[str, msgspec.Meta(pattern=FILE_PATH)]


class StoredFile(msgspec.Struct, frozen=True):
    """A Parquet file. `stats` is the text that Delta calls stats: rows, min, max, nulls."""

    path: FilePath
    rows: Count
    bytes: Count
    digest: str
    stats: str


class StreamPart(msgspec.Struct, frozen=True):
    """Which part of a stream a source is: where its first byte is, counted behind the header.

    `before` is the digest of header and stream up to there, and the source's own digest that up to
    the part's end. `head` are the first bytes of the part: they tell most other streams apart.
    """

    offset: int
    before: str
    head: bytes


class LoadSource(msgspec.Struct, frozen=True):
    """Something to load: a file, a part of a stream, or rows. `shown` is its name in messages.

    Rows are known by a key: `digest` is that of the key, and `content` that of the rows.
    """

    table: str
    name: str
    bytes: Count
    digest: str
    shown: str = ""
    part: StreamPart | None = None
    content: str = ""


class LoadRequest(msgspec.Struct, frozen=True):
    """What a client wants to load, and into which of its datasets."""

    dataset: str
    sources: tuple[LoadSource, ...]
    again: bool = False  # load all of a file that has changed since


class UpkeepRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is to be done with a dataset: merge its small files, or delete what is not needed."""

    dataset: str
    compact_bytes: Count | None = None  # merge: about how large files become
    keep_seconds: float | None = None  # vacuum: versions of this time stay readable
    grace_seconds: float = 3_600.0  # vacuum: files that are younger stay


class JobLoad(msgspec.Struct, frozen=True):
    """Where the rows of a load go; decided when its job was created."""

    root: str  # prefix of the dataset's objects in the store
    load: str  # id of the load
    base: int  # the version from which the load was decided
    dataset: str  # id of the dataset, if this load makes it


class LoadedBatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """The files of a batch of a load; None where it gave no rows."""

    source: Count  # place among the sources of the load
    rows: StoredFile | None = None
    rejects: StoredFile | None = None
    rejected: Count = 0


class LoadSkip(msgspec.Struct, frozen=True):
    """A source that is not loaded, and why."""

    source: LoadSource
    reason: str


class LoadOffer(msgspec.Struct, frozen=True):
    """A gateway's answer to an offer: the job to create, for the sources that are new."""

    job: str
    new: tuple[int, ...]  # places among the offered sources
    skipped: tuple[LoadSkip, ...]
    version: int | None = None  # the newest version; None: there is no dataset yet
