"""end.json and outcome.json: how a table ends, and how a job did. docs/formats/end.md, outcome.md.

Each is created once, and what was created first decides.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from caudal.formats import document
from caudal.formats.digest import digest
from caudal.formats.frame import Count, Reason

STRICT = "a row to reject: "  # how the reason begins when a strict job failed with one
State = Literal["done", "failed", "cancelled", "expired"]


class End(msgspec.Struct, frozen=True):
    """What the client says about a table that it has sent."""

    batches: Count
    bytes: Count
    digest: str  # see digest_of_digests


class Outcome(msgspec.Struct, frozen=True):
    """How a job ended. `reason` says why, unless it is done."""

    state: State
    reason: str = ""
    at: float = 0.0  # seconds since 1970, UTC, by the clock of whoever wrote it
    failed: dict[str, Reason] = {}  # of a job that is done: queries without rows, and why


def digest_of_digests(digests: Iterable[str]) -> str:
    """The digest of a table: of its batches' digests, in order, a line feed after each.

    >>> digest_of_digests([]) == digest(b"")
    True
    """
    return digest("".join(f"{one}\n" for one in digests).encode())


def encode_end(end: End) -> bytes:
    return document.encode("end", 1, end)


def decode_end(data: bytes, key: str) -> End:
    return document.decode(data, "end", 1, End, key)


def encode_outcome(outcome: Outcome) -> bytes:
    return document.encode("outcome", 1, outcome)


def decode_outcome(data: bytes, key: str) -> Outcome:
    return document.decode(data, "outcome", 1, Outcome, key)
