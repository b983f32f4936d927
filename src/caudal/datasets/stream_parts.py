"""Where a stream goes on: which of its parts versions have brought already. Pure decisions.

A stream has no name and no end that could be known, so it is known by its beginning. Each part that
was loaded says: this many bytes, behind a beginning with this digest, giving a beginning with that
digest. When a stream comes again from its start, the parts that agree are skipped, one behind the
other; rows behind the last of them are new.

While the stream may still turn out to be inside a known part, nothing of it can be loaded. The
first bytes of each part tell another stream apart at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from caudal.datasets.contents import Contents, HeldSource
from caudal.formats.digest import Digesting

HEAD_BYTES = 64
_NEWLINE = 10


class Beginning:
    """The beginning of a stream that is settled: loaded, or skipped because it was."""

    def __init__(self, header: bytes) -> None:
        self.bytes = 0  # behind the header
        self._digest = Digesting()
        self._digest.update(header)

    @property
    def digest(self) -> str:
        return self._digest.value

    def extended(self, data: bytes | memoryview) -> str:
        """Return the digest of the beginning with some more bytes."""
        longer = self._digest.copy()
        longer.update(data)
        return longer.value

    def add(self, data: bytes | memoryview) -> None:
        self._digest.update(data)
        self.bytes += len(data)


@dataclass(frozen=True)
class StreamStep:
    """What to do with the bytes behind the beginning.

    `load`: they are new. `skip`: the first `bytes` of them were loaded by `version`. `wait`: more
    bytes must tell. `torn`: the stream ends inside a part that was loaded.
    """

    kind: Literal["load", "skip", "wait", "torn"]
    bytes: int = 0
    version: int = 0


def next_step(
    parts: Sequence[HeldSource], beginning: Beginning, data: memoryview, *, is_end: bool
) -> StreamStep:
    """Decide about the bytes that follow a beginning; `parts` are those of the stream's table."""
    waiting = None
    for held in parts:
        if held.part is None or held.part.before != beginning.digest:
            continue
        head = held.part.head[: len(data)]
        if bytes(data[: len(head)]) != head:
            continue
        if len(data) > held.bytes or (len(data) == held.bytes and (is_end or data[-1] == _NEWLINE)):
            if _ends_record(data, held.bytes) and (
                beginning.extended(data[: held.bytes]) == held.digest
            ):
                return StreamStep("skip", held.bytes, held.version)
        elif len(data):
            waiting = held
    if waiting is None:
        return StreamStep("load")
    if not is_end:
        return StreamStep("wait")
    if len(data) <= HEAD_BYTES:  # all of it was compared
        return StreamStep("skip", len(data), waiting.version)
    return StreamStep("torn", waiting.bytes, waiting.version)


def _ends_record(data: memoryview, size: int) -> bool:
    """Return whether a part of this size can end here: its last record may lack its line end."""
    return size == len(data) or data[size - 1] == _NEWLINE or data[size] in b"\r\n"


def parts_of(contents: Contents, table: str) -> list[HeldSource]:
    """Return the parts of streams that were loaded into a table."""
    return [held for held in contents.sources if held.part is not None and held.table == table]
