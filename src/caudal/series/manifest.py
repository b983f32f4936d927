"""The two kinds of manifest: the content of a version, and the state of a consolidation.

Both are JSON, created once by `create`, and never changed. docs/formats/series.md has examples.
"""

from enum import StrEnum
from typing import TypeVar

import msgspec

from caudal.decoding import decode_json
from caudal.errors import FormatError
from caudal.formats.digest import digest
from caudal.series.layout import Month
from caudal.series.rows import PRIMARY_KEYS

FORMAT = 1


class ManifestStatus(StrEnum):
    """The state of a consolidation. Readers use the newest manifest that is not in progress."""

    IN_PROGRESS = "in_progress"  # files are being written to `.tmp/`; may be started over
    COMMITTED = "committed"  # the files are valid; some may still be in `.tmp/`
    COMPLETED = "completed"  # every file is in its final place


class MonthPart(msgspec.Struct, frozen=True):
    """One file of events: the rows that a version added to a month."""

    month: str
    key: str
    rows: int
    size: int
    digest: str


class MonthInputs(msgspec.Struct, frozen=True):
    """The versions that changed a month, and a fingerprint of everything they added to it."""

    versions: tuple[int, ...]
    fingerprint: str

    def with_part(self, version: int, part_digest: str) -> "MonthInputs":
        """Return the inputs after one more version.

        The fingerprint is a chain over the contents.
        """
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
    timezone: str = ""  # of the local days; empty in manifests of older releases
    primary_keys: tuple[str, ...] = PRIMARY_KEYS  # what older releases always had
    format: int = FORMAT


class ProjectionFile(msgspec.Struct, frozen=True):
    """One series of one month. `tag` is the store's tag, known once the file is in its place."""

    series_code: str
    rows: int
    size: int
    digest: str
    tag: str = ""


class ConsolidationManifest(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the consolidation of one month.

    `standing` is the number of the newest manifest that was committed when this one was created.
    Readers use that one while this one is only in progress.

    `run` identifies the run that wrote it. Another run can finish an attempt, and two runs must
    never write the same bytes: `create` accepts equal bytes as its own, so a late run would not
    notice that it is late.
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
    """Return the bytes of a manifest, indented because people read them too."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def decode(data: bytes, kind: type[Manifest], key: str) -> Manifest:
    """Decode a manifest. Raise a FormatError that names the key if the bytes are not valid."""
    try:
        manifest = decode_json(data, kind)
    except msgspec.MsgspecError as error:
        raise FormatError(f"{key} is damaged: {error}") from error
    if manifest.format != FORMAT:
        raise FormatError(f"{key} has format {manifest.format}, this Caudal reads {FORMAT}")
    return manifest
