"""What a dataset holds at a version: a pure fold over its versions.

`follow` adds one version. A checkpoint is the result for some version, stored; reading it and the
versions behind it gives the same as reading all of them.

The files of a table are in the order of its rows: loads add at the end, a compaction puts its files
where the removed ones were.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from caudal.datasets import keys
from caudal.datasets.documents import (
    FORMAT,
    DatasetHead,
    DatasetVersion,
    Kind,
    LoadedSource,
    StoredFile,
    StreamPart,
    TableChange,
    checked_head,
)
from caudal.errors import FormatError
from caudal.formats import document
from caudal.formats.frame import Count, Milliseconds
from caudal.formats.loads import FilePath


class HeldFile(msgspec.Struct, frozen=True, array_like=True):
    """A file of a table, and the version that added it."""

    path: FilePath
    rows: Count
    bytes: Count
    digest: str
    added: Count
    stats: str = ""  # as in StoredFile; checkpoints of older releases lack it


class HeldSource(msgspec.Struct, frozen=True, array_like=True):
    """Something that was loaded, and the version that brought it."""

    version: Count
    table: str
    name: str
    bytes: Count
    digest: str
    part: StreamPart | None = None


class VersionSummary(msgspec.Struct, frozen=True, array_like=True):
    """A version as `caudal versions` lists it. Rows, files and bytes are those it added."""

    number: Count
    time: Milliseconds
    kind: Kind
    load: str
    rows: Count
    files: Count
    bytes: Count
    rejected: Count
    sources: Count


class Contents(msgspec.Struct, frozen=True, array_like=True):
    """Everything that versions 0 to `number` say."""

    head: DatasetHead
    number: Count
    time: Milliseconds
    tables: dict[str, tuple[HeldFile, ...]]
    sources: tuple[HeldSource, ...]
    history: tuple[VersionSummary, ...]
    checkpoint: Count = 0  # the newest checkpoint at or before `number`

    @property
    def columns(self) -> dict[str, dict[str, str]]:
        """Return the columns of every table with DuckDB's types."""
        return {table.name: dict(table.columns) for table in self.head.tables}


@dataclass
class _Growing:
    """Contents while versions are added, so that many versions cost no copies."""

    head: DatasetHead
    number: int
    time: int
    tables: dict[str, list[HeldFile]]
    sources: list[HeldSource]
    history: list[VersionSummary] = field(default_factory=list)

    def add(self, version: DatasetVersion) -> None:
        if version.number != self.number + 1 or version.head is not None:
            raise FormatError(f"version {version.number} cannot follow version {self.number}")
        for table, changes in version.changes.items():
            for change in changes:
                self.tables[table] = _changed(self.tables[table], change, version.number)
        if version.vacuumed is not None and not version.vacuumed.files.keys() <= self.tables.keys():
            raise ValueError("it deletes files of another table")
        self.sources += [_held(one, version.number) for one in version.sources]
        self.history.append(_summary(version))
        self.number, self.time = version.number, version.time


def first_contents(version: DatasetVersion) -> Contents:
    """Return the contents at version 0."""
    if version.number != 0 or version.head is None:
        raise FormatError("the first version of a dataset must be version 0 and say what it is")
    tables: dict[str, tuple[HeldFile, ...]] = {table.name: () for table in version.head.tables}
    return Contents(version.head, 0, version.time, tables, (), (_summary(version),))


def follow(contents: Contents, versions: Iterable[DatasetVersion]) -> Contents:
    """Return the contents after more versions. Raise FormatError if one does not fit."""
    growing = _Growing(
        contents.head,
        contents.number,
        contents.time,
        {table: list(files) for table, files in contents.tables.items()},
        list(contents.sources),
        list(contents.history),
    )
    for version in versions:
        try:
            growing.add(version)
        except (KeyError, ValueError) as error:
            raise FormatError(
                f"version {version.number} does not fit its dataset: {error}"
            ) from error
    return Contents(
        growing.head,
        growing.number,
        growing.time,
        {table: tuple(files) for table, files in growing.tables.items()},
        tuple(growing.sources),
        tuple(growing.history),
        contents.checkpoint,
    )


def last_vacuum(contents: Contents) -> int:
    """Return the number of the newest vacuum; 0 if there was none.

    It is a part of the names of new files: a vacuum may be deleting files of earlier names.
    """
    return max((one.number for one in contents.history if one.kind == "vacuum"), default=0)


def encode_checkpoint(contents: Contents) -> bytes:
    return document.encode("dataset checkpoint", FORMAT, contents)


def decode_checkpoint(data: bytes, number: int) -> Contents:
    key = keys.checkpoint_key(number)
    contents = document.decode(data, "dataset checkpoint", FORMAT, Contents, key)
    if contents.number != number:
        raise FormatError(f"{key} holds version {contents.number}")
    tables = {table.name for table in checked_head(contents.head).tables}
    if (
        contents.tables.keys() != tables
        or [one.number for one in contents.history] != list(range(number + 1))
        or any(file.added > number for files in contents.tables.values() for file in files)
    ):
        raise FormatError(f"{key} does not fit together")
    return msgspec.structs.replace(contents, checkpoint=number)


def _changed(files: Sequence[HeldFile], change: TableChange, number: int) -> list[HeldFile]:
    added = [_held_file(one, number) for one in change.add]
    if not change.remove:
        return [*files, *added]
    paths = [one.path for one in files]
    start = paths.index(change.remove[0])
    end = start + len(change.remove)
    if paths[start:end] != list(change.remove):
        raise ValueError("it removes files that are not consecutive")
    return [*files[:start], *added, *files[end:]]


def _held_file(file: StoredFile, number: int) -> HeldFile:
    return HeldFile(file.path, file.rows, file.bytes, file.digest, number, file.stats)


def _held(source: LoadedSource, number: int) -> HeldSource:
    return HeldSource(number, source.table, source.name, source.bytes, source.digest, source.part)


def _summary(version: DatasetVersion) -> VersionSummary:
    added = [
        (table, file)
        for table, changes in version.changes.items()
        for change in changes
        for file in change.add
    ]
    return VersionSummary(
        version.number,
        version.time,
        version.kind,
        version.load,
        sum(file.rows for table, file in added if table != keys.REJECTS),
        len(added),
        sum(file.bytes for _, file in added),
        sum(source.rejected for source in version.sources),
        len(version.sources),
    )
