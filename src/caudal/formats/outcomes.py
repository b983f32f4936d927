"""end.json and outcome.json: the end of a table, and the outcome of a job.

Each is created once; the first create wins. See docs/formats/end.md and outcome.md.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from caudal.formats import document
from caudal.formats.digest import digest
from caudal.formats.frame import Count, Reason

STRICT = "a row to reject: "  # start of the reason when a rejected row failed a strict job
# Start of the reason when nobody computes a question any more: clients ask it again. Workers of
# release 0.1.0 say it, too.
PLANNED_ELSEWHERE = "the question was planned with another version of "
State = Literal["done", "failed", "cancelled", "expired"]


class End(msgspec.Struct, frozen=True):
    """The client's statement about a table that it has sent completely."""

    batches: Count
    bytes: Count
    digest: str  # see digest_of_digests


class Outcome(msgspec.Struct, frozen=True):
    """The way a job ended. `reason` says why, unless the job is done."""

    state: State
    reason: str = ""
    at: float = 0.0  # seconds since 1970, UTC, by the clock of the process that wrote it
    failed: dict[str, Reason] = {}  # if the job is done: the queries that failed, and why


def end_of(batches: Sequence[tuple[str, int]]) -> End:
    """Return the end of a table that has these batches: the digest and the size of each.

    >>> end_of([("a", 3), ("b", 4)]) == End(2, 7, digest_of_digests(["a", "b"]))
    True
    """
    sizes, digests = [size for _, size in batches], [one for one, _ in batches]
    return End(len(batches), sum(sizes), digest_of_digests(digests))


def digest_of_digests(digests: Iterable[str]) -> str:
    """Return the digest of a table: that of its batches' digests, in order, each with a line feed.

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
