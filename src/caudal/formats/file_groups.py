"""The files of a dataset that a job reads as one table, in groups: each group is a batch.

Created by the gateway when the job is created, as `jobs/J/RUN/inputs/T`.
"""

from collections.abc import Sequence

import msgspec

from caudal.formats import document
from caudal.formats.digest import digest
from caudal.formats.frame import Count
from caudal.formats.loads import FilePath

KIND, FORMAT = "dataset files", 1


class GroupFile(msgspec.Struct, frozen=True, array_like=True):
    """A Parquet file of the table: its path as in the Delta log, size and digest."""

    path: FilePath
    bytes: Count
    digest: str


class FileGroup(msgspec.Struct, frozen=True, array_like=True):
    """Consecutive files that one map task reads."""

    files: tuple[GroupFile, ...]

    @property
    def digest(self) -> str:
        return group_digest([one.digest for one in self.files])

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.files)


def group_digest(digests: Sequence[str]) -> str:
    """Return the digest of a group; that of the file if there is only one."""
    return digests[0] if len(digests) == 1 else digest("\n".join(digests).encode())


def encode(groups: Sequence[FileGroup]) -> bytes:
    return document.encode(KIND, FORMAT, groups)


def decode(data: bytes, key: str) -> tuple[FileGroup, ...]:
    return document.decode(data, KIND, FORMAT, tuple[FileGroup, ...], key)
