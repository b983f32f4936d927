"""The two kinds of manifest: what a version added, and how far a month's consolidation is.

Both are JSON, made once by `create`, and never changed. docs/formats/series.md has examples.
"""

from enum import StrEnum
from typing import TypeVar

import msgspec

from caudal.errors import FormatError
from caudal.formats.digest import digest
from caudal.series.layout import Month

FORMAT = 1


class ManifestStatus(StrEnum):
    """How far a consolidation is. Readers go by the newest manifest that is not in progress."""

    IN_PROGRESS = "in_progress"  # files are being written to `.tmp/`; may be started over
    COMMITTED = "committed"  # the files count; some may still lie in `.tmp/`
    COMPLETED = "completed"  # every file is in its place


class MonthPart(msgspec.Struct, frozen=True):
    """One file of events: what a version added to a month."""

    month: str
    key: str
    rows: int
    size: int
    digest: str


class MonthInputs(msgspec.Struct, frozen=True):
    """The versions that touched a month, and a fingerprint of all they added to it."""

    versions: tuple[int, ...]
    fingerprint: str

    def with_part(self, version: int, part_digest: str) -> "MonthInputs":
        """The inputs after one more version. The fingerprint is a chain over the contents."""
        text = f"{FORMAT} {self.fingerprint} {version} {part_digest}"
        return MonthInputs((*self.versions, version), digest(text.encode()))


NO_INPUTS = MonthInputs((), "")


class VersionManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The commit of one event version. `months` covers the whole log up to this version."""

    dataset_id: str
    version: int
    attempt: str
    timestamp: str
    vintage_date: str
    source: str
    added: int
    revised: int
    parts: tuple[MonthPart, ...]
    months: dict[str, MonthInputs]
    timezone: str = ""  # of the local days; manifests of old do not say it
    format: int = FORMAT


class ProjectionFile(msgspec.Struct, frozen=True):
    """One series of one month. `tag` is the store's, known once the file is in its place."""

    series_code: str
    rows: int
    size: int
    digest: str
    tag: str = ""


class ConsolidationManifest(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one month's consolidation.

    `standing` is the number of the newest manifest that was committed when this one was made:
    what readers go by as long as this one is only in progress.

    `run` is who wrote it. An attempt can be finished by another run, and two runs must never write
    the same bytes: `create` takes equal bytes for its own, and a late run would not see that it is
    late.
    """

    dataset_id: str
    year: int
    month: int
    status: ManifestStatus
    timestamp: str
    number: int
    attempt: str
    run: str
    fingerprint: str
    versions: tuple[int, ...]
    standing: int | None = None
    files: tuple[ProjectionFile, ...] = ()
    format: int = FORMAT

    @property
    def of(self) -> Month:
        return Month(self.dataset_id, self.year, self.month)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


Manifest = TypeVar("Manifest", VersionManifest, ConsolidationManifest)


def encode(manifest: VersionManifest | ConsolidationManifest) -> bytes:
    """The bytes of a manifest: indented, since people read them too."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def decode(data: bytes, kind: type[Manifest], key: str) -> Manifest:
    """A manifest from its bytes; FormatError names the key if they are something else."""
    try:
        manifest = msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise FormatError(f"{key} is damaged: {error}") from error
    if manifest.format != FORMAT:
        raise FormatError(f"{key} has format {manifest.format}, this Caudal reads {FORMAT}")
    return manifest
