"""The output of merge: the indexes of a group's mapped objects, so that folds need not read them.

    object = head              frame.py, magic "CAUDALG1", index: class Merged, no body

It names the range of batches that it covers. A merge that ran before the table's end was known
covers a full group, even if the end is smaller. docs/formats/merged.md has an example.
"""

import msgspec

from caudal.formats import frame
from caudal.formats.frame import Count
from caudal.formats.mapped import Index

MAGIC = b"CAUDALG1"


class MergedMember(msgspec.Struct, frozen=True, omit_defaults=True):
    """One mapped object: its index, and the offset of its body."""

    index: Index
    body: Count
    own: bool = False  # over a dataset: it lies in the job, nobody else reads it


class Merged(msgspec.Struct, frozen=True):
    """Batches first … first + len(members) - 1 of a table."""

    table: str
    first: Count
    members: tuple[MergedMember, ...]

    @property
    def end(self) -> int:
        """The number of the first batch behind the range."""
        return self.first + len(self.members)


def encode(merged: Merged) -> bytes:
    return frame.encode(MAGIC, merged)


def decode(data: bytes, key: str) -> Merged:
    return frame.decode(frame.of_bytes(data), MAGIC, Merged, key)[0]
