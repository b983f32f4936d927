"""The output of merge: the indexes of a group's mapped objects, so that folds open no headers.

    object = head              frame.py, magic "CAUDALG1", index: class Merged, no body

It names the range that it covers: a merge that ran before the table's end was known covers a full
group, whatever the end says later. docs/formats/merged.md has an example.
"""

import msgspec

from caudal.formats import frame
from caudal.formats.frame import Count
from caudal.formats.mapped import Index

MAGIC = b"CAUDALG1"


class MergedMember(msgspec.Struct, frozen=True):
    """One mapped object: its index, and where its body begins."""

    index: Index
    body: Count


class Merged(msgspec.Struct, frozen=True):
    """Batches first … first + len(members) - 1 of a table."""

    table: str
    first: Count
    members: tuple[MergedMember, ...]

    @property
    def end(self) -> int:
        """The first batch that it does not cover."""
        return self.first + len(self.members)


def encode(merged: Merged) -> bytes:
    return frame.encode(MAGIC, merged)


def decode(data: bytes, key: str) -> Merged:
    return frame.decode(frame.of_bytes(data), MAGIC, Merged, key)[0]
